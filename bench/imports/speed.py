"""Models imported from PyTorch modules beside the built-in ones of the same config.json: seconds of a step and planned peak, in turn.

    bench/run-imports [--only W2,W3] [--precision fp32,bf16] [--rounds 5] [--steps 4] [--threads 2]

Both train with AdamW and clipping on one batch of drawn tokens. A peak is what the plan says of the model's own memory: state and
the arena of a step, without the process around it. Processor seconds are beside the seconds, because other work on the machine
disturbs them less.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "step"))
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("PLIMSOLL_LIBRARY", str(ROOT / "build" / "libplimsoll.so.0"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from processes import Side  # noqa: E402
from report import MIB, against, table  # noqa: E402
from workplace import Workplace, add_arguments, opening, progress  # noqa: E402

SHAPES = {"W1": (8, 256), "W2": (1, 512), "W2b": (4, 512), "W3": (4, 64)}  # sequences, tokens of each


def built_in(args, name, precision, log):
    run = HERE.parent / "step" / name.lower() / "run.yaml"
    overrides = [f"training.precision={precision}", f"runtime.threads={args.threads}"]
    return Side("built-in", [args.binary, "bench", "step", str(run), "--interactive", "--json", *overrides], log)


def imported(args, name, precision):
    """A plan of the same model as transformers builds it, and its batch."""
    import torch
    import transformers

    import plimsoll as pl
    import plimsoll.torch as plt
    config = transformers.AutoConfig.from_pretrained(HERE.parent / "step" / name.lower())
    config.use_cache = False
    torch.manual_seed(0)
    module = transformers.AutoModelForCausalLM.from_config(config).train()
    ids = torch.randint(0, config.vocab_size, SHAPES[name])
    plan = plt.plan(module, {"input_ids": ids, "labels": ids}, optimizer=pl.AdamW(lr=3e-4, weight_decay=0.01), clip_norm=1.0,
                    precision=precision, threads=args.threads, accumulate=False)
    return plan, {"input_ids": ids.int().numpy(), "labels": ids.int().numpy()}


def model_bytes(plan):
    return plan["device"]["persistent_bytes"] + plan["device"]["arena_bytes"]


def timed(steps, work, processor):
    wall, busy = time.perf_counter(), processor()
    work()
    return (time.perf_counter() - wall) / steps, (processor() - busy) / steps


def measure(args, name, precision, log):
    import plimsoll as pl
    side = built_in(args, name, precision, log)
    try:
        side.go(1)
        plan, batch = imported(args, name, precision)
        rounds = []
        with pl.Session(plan, seed=0) as session:
            session.step(batch)
            for number in range(args.rounds):
                progress(f"{name} in {precision}, round {number + 1} of {args.rounds}")
                sides = {"built-in": lambda: timed(args.steps, lambda: side.go(args.steps), side.cpu_seconds),
                         "imported": lambda: timed(args.steps, lambda: [session.step(batch) for _ in range(args.steps)], time.process_time)}
                order = list(sides) if number % 2 == 0 else list(sides)[::-1]
                rounds.append({which: sides[which]() for which in order})
                log.write(f"{name} {precision} {json.dumps(rounds[-1])}\n")
        return {"rounds": rounds, "built-in": model_bytes(side.last("plan")), "imported": model_bytes(plan.report)}
    finally:
        side.stop()


def ratio(result, which):
    """The built-in model's seconds over the imported one's, the median of the rounds' own."""
    return statistics.median(each["built-in"][which] / each["imported"][which] for each in result["rounds"])


def goal_rows(results):
    for (name, precision), result in results.items():
        yield [name, precision, "speed, imported over built-in", *against(ratio(result, 0), 0.95)]
        yield [name, precision, "the same by processor time", *against(ratio(result, 1), 0.95)]
        yield [name, precision, "planned state and arena, imported over built-in",
               *against(result["imported"] / result["built-in"], 1.05, at_most=True)]


def round_rows(results):
    for (name, precision), result in results.items():
        for which in ("built-in", "imported"):
            walls, busy = zip(*(each[which] for each in result["rounds"]))
            yield [name, precision, which, f"{statistics.median(walls):.3f}", f"{min(walls):.3f}–{max(walls):.3f}",
                   f"{statistics.median(busy):.3f}", f"{result[which] / MIB:,.0f}"]


def page(about, args, results):
    conditions = f"{args.rounds} rounds in turn of {args.steps} steps each, {args.threads} threads"
    return f"""{opening(about, "Models imported from PyTorch beside the built-in ones", conditions)}
- Ratios are the median of the rounds' own

## Goals

{table(["model", "precision", "figure", "measured", "goal", ""], list(goal_rows(results)), left=3)}

## Rounds

{table(["model", "precision", "", "seconds", "between", "processor seconds", "state and arena, MiB"], list(round_rows(results)), left=3)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-imports", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="W2,W3", help="models, comma separated, of " + ", ".join(SHAPES))
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, 1)
    args = parser.parse_args()
    with Workplace(args, "imports", "bench/run-imports") as place:
        place.publish(page(place.about, args, {(name, precision): measure(args, name, precision, place.log)
                                               for name in args.only.split(",") for precision in args.precision.split(",")}))


if __name__ == "__main__":
    main()
