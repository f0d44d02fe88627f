"""Prints the rows of tests/optimizers/torch_test.cpp: where torch.optim leaves two parameters after twenty steps.

Needs torch and transformers. The matrix decays, the vector does not; both are four numbers, their gradients are sines of the step, and
clip_grad_norm_ comes before the optimizer, as in the HF Trainer. In float64, so that only the rule itself is recorded.
"""
import math

import torch
from transformers.optimization import Adafactor

STEPS, START = 20, [1.0, -2.0, 0.5, 3.0]


def gradient(parameter, step):
    return torch.tensor([math.sin(step + 2 * i + 5 * parameter) for i in range(4)], dtype=torch.float64)


def row(name, make, clip=0.0, weight_decay=0.0, section=None, **fields):
    matrix = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64).reshape(2, 2))
    vector = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = make([dict(params=[matrix], weight_decay=weight_decay), dict(params=[vector], weight_decay=0.0)])
    for step in range(1, STEPS + 1):
        matrix.grad, vector.grad = gradient(0, step).reshape(2, 2), gradient(1, step)
        if clip:
            torch.nn.utils.clip_grad_norm_([matrix, vector], clip)
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / step
        optimizer.step()
    hyper = dict(fields, weight_decay=weight_decay)
    given = "".join(f".{key} = {str(hyper[key]).lower()}, " for key in
                    ("beta1", "beta2", "epsilon", "weight_decay", "momentum", "dampening", "nesterov") if key in hyper)
    inner = ", ".join(f'.{key} = "{value}"' if isinstance(value, str) else
                      f".{key} = {{{', '.join(map(str, value))}}}" if isinstance(value, tuple) else f".{key} = {str(value).lower()}"
                      for key, value in (section or {}).items())
    behind = f", .{name} = {{{inner}}}" if section else ""
    values = ", ".join(f"{float(v):.12g}" for v in [*matrix.detach().flatten(), *vector.detach()])
    print(f'    {{{{{given}.optimizer = "{name}"{behind}}}, {clip}, {{{values}}}}},')


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023, arXiv:2302.06675; torch.optim has none."""

    def __init__(self, groups):
        super().__init__(groups, dict(lr=0.1, betas=(0.8, 0.95)))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), rate = group["betas"], group["lr"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - rate * group["weight_decay"]).sub_(rate * torch.sign(b1 * m + (1 - b1) * p.grad))
                m.mul_(b2).add_((1 - b2) * p.grad)


def adam(kind):
    return lambda groups: kind(groups, lr=0.1, betas=(0.8, 0.95), eps=1e-3)


def sgd(**options):
    return lambda groups: torch.optim.SGD(groups, lr=0.1, **options)


BETAS = dict(beta1=0.8, beta2=0.95, epsilon=1e-3)
row("adamw", adam(torch.optim.AdamW), weight_decay=0.1, **BETAS)
row("adamw", adam(torch.optim.AdamW), clip=0.5, weight_decay=0.1, **BETAS)
row("adam", adam(torch.optim.Adam), **BETAS)
row("adam_l2", adam(torch.optim.Adam), clip=0.5, weight_decay=0.1, **BETAS)
row("adamw_8bit", adam(torch.optim.AdamW), weight_decay=0.1, **BETAS)  # as small as that it is AdamW; record_8bit.py
row("sgd", sgd())
row("sgd", sgd(), clip=0.5, weight_decay=0.1)
for options in (dict(momentum=0.9), dict(momentum=0.9, dampening=0.4), dict(momentum=0.9, nesterov=True)):
    row("sgd", sgd(**options), **options)
    row("sgd", sgd(**options), clip=0.5, weight_decay=0.1, **options)
row("lion", Lion, beta1=0.8, beta2=0.95)
row("lion", Lion, clip=0.5, weight_decay=0.1, beta1=0.8, beta2=0.95)
for options in (dict(), dict(scale_parameter=True), dict(scale_parameter=True, eps=(0.5, 2.5)),
                dict(scale_parameter=True, relative_step=True),
                dict(relative_step=True, warmup_init=True), dict(clip_threshold=0.5, decay_rate=-0.5, beta1=0.9)):
    given = dict(dict(scale_parameter=False, relative_step=False), **options)
    row("adafactor", lambda groups: Adafactor(groups, lr=None if given["relative_step"] else 0.1, **given),
        weight_decay=0.1, section=options, clip=0.5 if options else 0.0)


class Muon:
    """torch.optim.Muon of the matrix, AdamW of the vector."""

    def __init__(self, groups, **options):
        self.parts = [torch.optim.Muon(groups[:1], lr=0.1, **options), torch.optim.AdamW(groups[1:], **ADAMW)]
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def step(self):
        for part in self.parts:
            part.step()


ADAMW = dict(lr=0.1, betas=(0.8, 0.95), eps=1e-3)
torch.bfloat16 = torch.float64  # Newton-Schulz without its rounding
for section in (dict(adjust_lr_fn="original"), dict(adjust_lr_fn="match_rms_adamw"),
                dict(momentum=0.8, nesterov=False, adjust_lr_fn="original"), dict(ns_steps=3)):
    row("muon", lambda groups: Muon(groups, **section), clip=0.5, weight_decay=0.1, section=section, **BETAS)


def filters(**options):
    """Adafactor on a convolution [out, in, height, width]; printed in the order [out, height, width, in], for adafactor_test.cpp."""
    shape = (2, 2, 2, 3)
    values = torch.tensor([math.sin(3 * i) for i in range(24)], dtype=torch.float64).reshape(shape)
    weight = torch.nn.Parameter(values)
    optimizer = Adafactor([weight], lr=0.1, weight_decay=0.1, scale_parameter=True, relative_step=False, **options)
    for step in range(1, STEPS + 1):
        weight.grad = torch.tensor([math.sin(step + 2 * i) for i in range(24)], dtype=torch.float64).reshape(shape)
        optimizer.step()
    print(", ".join(f"{float(v):.12g}" for v in weight.detach().permute(0, 2, 3, 1).flatten()))


filters()
filters(beta1=0.9)
