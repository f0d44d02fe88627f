"""Trains the demo's model in each FP8 and FP4 recipe, with and without what makes a recipe work, beside bf16.

    bench/run-fp8 [--steps 1000] [--seeds 1,2,3] [--only nvfp4] [--model 10m]
    python3 bench/precision/fp8.py --of bench/results/….log

docs/fp8.svg shows how far the training losses lie from bf16's along the way. `--of` makes page and picture of a log
alone, of the rows and seeds that it has whole. `--model 10m` is the demo's model with wider and more layers.

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

# Settings over the demo's.
MODELS = {
    "demo": [],
    "10m": [f"model.overrides.{name}={value}" for name, value in
            dict(hidden_size=320, intermediate_size=864, num_hidden_layers=9, num_attention_heads=10,
                 num_key_value_heads=5).items()],
}
OF_ALL = ("memory.", "model.", "runtime.")  # settings that no row differs in


def apart(results, name, seeds):
    return [results[name, s] / results["bf16", s] - 1 for s in seeds]


def name_of(run):
    """Of the row that a line of the log is a run of; None: it is in no row."""
    overrides = [o for o in run["overrides"] if not o.startswith(OF_ALL)]
    return next((name for name, precision, of_row, _ in ROWS if (precision, of_row) == (run["precision"], overrides)), None)


def read(log):
    """Runs of each row by seed, of the seeds that all rows of the log have (the first one's where that is none)."""
    runs = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        runs.setdefault(name_of(run), {})[run["seed"]] = run
    seeds = [s for s in sorted(runs["bf16"]) if all(s in of_row for of_row in runs.values())] or [min(runs["bf16"])]
    return {name: of_row for name, of_row in runs.items() if name and all(s in of_row for s in seeds)}, seeds


def draw(runs, seeds):
    losses = {name: [of_row[s]["losses"] for s in seeds] for name, of_row in runs.items()}
    (ROOT / "docs" / "fp8.svg").write_text(fp8_picture.draw_losses(losses), encoding="utf-8")


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


def write_page(log, model, commit):
    runs, seeds = read(log)
    rows = [r for r in ROWS if r[0] in runs]
    results = {(name, s): of_row[s]["held_out"] for name, of_row in runs.items() for s in seeds}
    steps, named = len(runs["bf16"][seeds[0]]["losses"]), ",".join(str(s) for s in seeds)
    of = {"demo": "The demo's model", "10m": "A Llama of 10.6 million parameters"}[model]
    page = [machine.title(f"{of} in FP8 and FP4: {steps} steps, seeds {named}", commit), "",
            f"{machine.cpu()['model']}, {machine.cpu()['count']} CPUs, commit {commit}.", "",
            "Held-out loss after the last step, and its distance to bf16's from the same seed:", "",
            *table(results, rows, seeds), "",
            ("Curves: docs/fp8.svg. " if model == "demo" else "") + "Every loss: the log beside this page (bench/run-fp8)."]
    log.with_suffix(".md").write_text("\n".join(page) + "\n", encoding="utf-8")
    if model == "demo":
        draw(runs, seeds)
    print("\n".join(page))
    return 0 if all(max(apart(results, r[0], seeds)) <= r[3] for r in rows if r[3]) else 1


def main():
    parser = argparse.ArgumentParser(prog="bench/run-fp8", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", default="", help="rows whose name contains this, beside bf16")
    parser.add_argument("--model", choices=MODELS, default="demo")
    parser.add_argument("--of", type=pathlib.Path, help="a log: makes its page and picture, and runs nothing")
    args = parser.parse_args()
    commit = machine.commit()
    if args.of:
        return write_page(args.of, args.model, commit)
    of_model = "fp8" if args.model == "demo" else f"fp8-{args.model}"
    path = ROOT / "bench" / "results" / f"{datetime.date.today()}-{of_model}-{machine.slug(machine.cpu())}.log"
    with open(path, "w", encoding="utf-8") as log:
        for seed in [int(s) for s in args.seeds.split(",")]:
            for row, precision, overrides, _ in [r for r in ROWS if r[0] == "bf16" or args.only in r[0]]:
                settings = [*overrides, *MODELS[args.model], "memory.budget=1GiB"]
                done = curves.run(precision, seed, args.steps, log, settings)
                print(f"{row}, seed {seed}: held-out loss {done['held_out']:.4f}", flush=True)
    return write_page(path, args.model, commit)


if __name__ == "__main__":
    sys.exit(main())
