"""Trains the demo's model in each FP8 and FP4 recipe, with and without what makes a recipe work, beside bf16.

    bench/run-fp8 [--steps 1000] [--seeds 1,2,3] [--only nvfp4]
    python3 bench/precision/fp8.py --draw bench/results/….log

docs/fp8.svg shows how far the training losses lie from bf16's along the way; `--draw` makes it of a log alone.

A run differs from another in its seed and the settings of its row alone. The page gives held-out losses at the end and
their distance to bf16's from the same seed: what a row without a part of its recipe loses is what that part is worth.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "step"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import curves  # noqa: E402
import fp8_picture  # noqa: E402
import machine  # noqa: E402

FP8 = "training.fp8."
# Name of the row, precision, overrides, and the most that its loss may be above bf16's (None: what a recipe is without).
ROWS = [
    ("bf16", "bf16", [], None),
    ("delayed", "fp8", [FP8 + "recipe=delayed"], 0.01),
    ("delayed, E4M3 gradients", "fp8", [FP8 + "recipe=delayed", FP8 + "fp8_format=e4m3"], None),
    ("delayed, amax of the last step", "fp8", [FP8 + "recipe=delayed", FP8 + "amax_compute_algo=most_recent"], None),
    ("current", "fp8", [FP8 + "recipe=current"], 0.01),
    ("block", "fp8", [FP8 + "recipe=block"], 0.01),
    ("mxfp8", "fp8", [FP8 + "recipe=mxfp8"], 0.01),
    ("nvfp4", "fp8", [FP8 + "recipe=nvfp4"], 0.02),
    ("nvfp4 without Hadamard transform", "fp8", [FP8 + "recipe=nvfp4", FP8 + "hadamard=false"], None),
    ("nvfp4 without stochastic rounding", "fp8", [FP8 + "recipe=nvfp4", FP8 + "stochastic_rounding=false"], None),
    ("nvfp4 without both", "fp8", [FP8 + "recipe=nvfp4", FP8 + "hadamard=false", FP8 + "stochastic_rounding=false"], None),
    ("nvfp4, a quarter of the layers in bf16", "fp8", [FP8 + "recipe=nvfp4", FP8 + "keep_last_layers=0.25"], None),
    ("mxfp8, quantized activations", "fp8", [FP8 + "recipe=mxfp8", FP8 + "quantized_activations=true"], 0.01),
    ("bf16, moments fp8_lm", "bf16", ["training.state.moments=fp8_lm"], 0.01),
    ("bf16, moments coat", "bf16", ["training.state.moments=coat"], 0.01),
    ("bf16, moments bf16", "bf16", ["training.state.moments=bf16"], None),
]


def apart(results, name, seeds):
    return [results[name, s] / results["bf16", s] - 1 for s in seeds]


def name_of(run):
    """Of the row that a line of the log is a run of; None: it is in no row."""
    overrides = [o for o in run["overrides"] if not o.startswith("memory.")]
    return next((name for name, precision, of_row, _ in ROWS if (precision, of_row) == (run["precision"], overrides)), None)


def draw(log):
    losses = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        losses.setdefault(name_of(run), {})[run["seed"]] = run["losses"]
    first = min(losses["bf16"])  # of a log that is not whole yet, the seed that came first
    seeds = [s for s in sorted(losses["bf16"]) if all(s in runs for runs in losses.values())] or [first]
    whole = {name: [runs[s] for s in seeds] for name, runs in losses.items() if name and all(s in runs for s in seeds)}
    (ROOT / "docs" / "fp8.svg").write_text(fp8_picture.draw_losses(whole), encoding="utf-8")


def table(results, rows, seeds):
    lines = ["| run | " + " | ".join(f"seed {s}" for s in seeds) + " | from bf16, mean | furthest | goal |",
             "| --- |" + " --- |" * (len(seeds) + 3)]
    for name, _, _, goal in rows:
        losses = " | ".join(f"{results[name, s]:.4f}" for s in seeds)
        distances = apart(results, name, seeds)
        worst = max(distances, key=abs)
        lines.append(f"| {name} | {losses} | {100 * statistics.mean(distances):+.2f} % | {100 * worst:+.2f} % | "
                     + (f"{100 * goal:.0f} % |" if goal else "- |"))
    return lines


def main():
    parser = argparse.ArgumentParser(prog="bench/run-fp8", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", default="", help="rows whose name contains this, beside bf16")
    parser.add_argument("--draw", type=pathlib.Path, help="a log: makes the picture of it, and runs nothing")
    args = parser.parse_args()
    if args.draw:
        return draw(args.draw)
    seeds = [int(s) for s in args.seeds.split(",")]
    rows = [r for r in ROWS if r[0] == "bf16" or args.only in r[0]]
    name = f"{datetime.date.today()}-fp8-{machine.slug(machine.cpu())}"
    results, commit = {}, machine.commit()
    with open(ROOT / "bench" / "results" / f"{name}.log", "w", encoding="utf-8") as log:
        for seed in seeds:
            for row, precision, overrides, _ in rows:
                results[row, seed] = curves.run(precision, seed, args.steps, log, [*overrides, "memory.budget=1GiB"])["held_out"]
                print(f"{row}, seed {seed}: held-out loss {results[row, seed]:.4f}", flush=True)
    page = [machine.title(f"The demo's model in FP8 and FP4: {args.steps} steps, seeds {args.seeds}", commit), "",
            f"{machine.cpu()['model']}, {machine.cpu()['count']} CPUs, commit {commit}.", "",
            "Held-out loss after the last step, and its distance to bf16's from the same seed:", "",
            *table(results, rows, seeds), "", "Curves: docs/fp8.svg. Every loss: the log beside this page (bench/run-fp8)."]
    (ROOT / "bench" / "results" / f"{name}.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    draw(ROOT / "bench" / "results" / f"{name}.log")
    print("\n".join(page))
    return 0 if all(max(apart(results, r[0], seeds)) <= r[3] for r in rows if r[3]) else 1


if __name__ == "__main__":
    sys.exit(main())
