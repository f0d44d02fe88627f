"""Prints the rows of schedule_test.cpp: rates that transformers' and torch's schedules give for the same options.

Needs torch and transformers. Learning rate 3e-4, warm-up 3, 10 steps.
"""
import torch
import transformers.optimization as hf
from torch.optim.lr_scheduler import OneCycleLR, StepLR

LR, WARMUP, TOTAL = 3e-4, 3, 10


def rates(make, count):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=LR)
    schedule = make(optimizer)
    values = []
    for step in range(count):
        values.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        if step + 1 < count:
            schedule.step()
    return values


def row(name, make, count=12, **options):
    print("  {")
    print(f'    ScheduleOptions o = base("{name}");')
    for key, value in options.items():
        text = f'"{value}"' if isinstance(value, str) else repr(value)
        print(f"    o.{key} = {text};")
    print(f"    add(o, {{{', '.join(map(repr, rates(make, count)))}}});")
    print("  }")


def wsd(**options):
    return lambda o: hf.get_wsd_schedule(o, WARMUP, 4, TOTAL, **options)


row("constant", hf.get_constant_schedule)
row("constant_with_warmup", lambda o: hf.get_constant_schedule_with_warmup(o, WARMUP))
row("linear", lambda o: hf.get_linear_schedule_with_warmup(o, WARMUP, TOTAL))
row("cosine", lambda o: hf.get_cosine_schedule_with_warmup(o, WARMUP, TOTAL))
row("cosine", lambda o: hf.get_cosine_schedule_with_warmup(o, WARMUP, TOTAL, num_cycles=1.5), num_cycles=1.5)
row("cosine_with_restarts", lambda o: hf.get_cosine_with_hard_restarts_schedule_with_warmup(o, WARMUP, TOTAL))
row("cosine_with_restarts",
    lambda o: hf.get_cosine_with_hard_restarts_schedule_with_warmup(o, WARMUP, TOTAL, num_cycles=2), num_cycles=2.0)
row("polynomial", lambda o: hf.get_polynomial_decay_schedule_with_warmup(o, WARMUP, TOTAL))
row("polynomial", lambda o: hf.get_polynomial_decay_schedule_with_warmup(o, WARMUP, TOTAL, lr_end=1e-5, power=2.0),
    lr_end=1e-5, power=2.0)
row("wsd", wsd(decay_type="linear", min_lr_ratio=0.1), num_decay_steps=4, decay_type="linear", min_lr_ratio=0.1)
row("wsd", wsd(warmup_type="cosine"), num_decay_steps=4, warmup_type="cosine")
row("wsd", wsd(warmup_type="1-sqrt", decay_type="1-sqrt", min_lr_ratio=0.05), num_decay_steps=4,
    warmup_type="1-sqrt", decay_type="1-sqrt", min_lr_ratio=0.05)
row("step", lambda o: StepLR(o, 4, 0.5), warmup_steps=0, step_size=4, gamma=0.5)
row("one_cycle", lambda o: OneCycleLR(o, LR, total_steps=TOTAL), count=10)
row("one_cycle", lambda o: OneCycleLR(o, LR, total_steps=TOTAL, pct_start=0.5, div_factor=10, final_div_factor=100),
    count=10, pct_start=0.5, div_factor=10.0, final_div_factor=100.0)
