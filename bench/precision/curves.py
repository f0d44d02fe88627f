"""Trains the demo's model in several precisions from the same seeds and draws the losses.

    bench/run-precision [--steps 500] [--seeds 1,2,3] [--precisions fp32,bf16,fp16]

A run differs from another in seed and precision alone. The page gives held-out losses at the end and their distance to
fp32's; the picture, docs/precision.svg, shows the training losses and that distance along the way.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "step"))

import machine  # noqa: E402
import picture  # noqa: E402

LIMIT = 0.01  # of fp32's final loss


def run(precision, seed, steps, log, overrides=()):
    """Losses of all steps, the held-out loss behind the last, and how many steps were skipped."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["build/plimsoll", "train", "examples/demo/run.yaml", "--json", "--resume", "never",
                   f"training.precision={precision}", f"training.seed={seed}", f"training.max_steps={steps}",
                   "training.eval_steps=0", f"output.dir={scratch}/run", "data.cache_dir=demo/run/data", *overrides]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"curves: {' '.join(command)} left with {done.returncode}: {done.stderr}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    losses = [e["loss"] for e in events if e["event"] == "step"]
    held_out = [e["loss"] for e in events if e["event"] == "eval"][-1]
    skipped = sum(e.get("skipped", False) for e in events if e["event"] == "step")
    log.write(json.dumps(dict(precision=precision, overrides=overrides, seed=seed, held_out=held_out, skipped=skipped, losses=losses)) + "\n")
    log.flush()
    return dict(losses=losses, held_out=held_out, skipped=skipped)


def table(results, precisions, seeds):
    lines = ["| seed | " + " | ".join(f"{p} | from fp32" if p != "fp32" else p for p in precisions) + " |",
             "| --- |" + " --- |" * (2 * len(precisions) - 1)]
    for seed in seeds:
        base = results["fp32", seed]["held_out"]
        cells = []
        for p in precisions:
            value = results[p, seed]["held_out"]
            cells.append(f"{value:.4f}" if p == "fp32" else f"{value:.4f} | {100 * (value / base - 1):+.2f} %")
        lines.append(f"| {seed} | " + " | ".join(cells) + " |")
    return lines


def worst(results, precision, seeds):
    return max(abs(results[precision, s]["held_out"] / results["fp32", s]["held_out"] - 1) for s in seeds)


def main():
    parser = argparse.ArgumentParser(prog="bench/run-precision", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--precisions", default="fp32,bf16,fp16", help="fp32 first")
    args = parser.parse_args()
    seeds, precisions = [int(s) for s in args.seeds.split(",")], args.precisions.split(",")
    name = f"{datetime.date.today()}-precision-{machine.slug(machine.cpu())}"
    results, commit = {}, machine.commit()
    with open(ROOT / "bench" / "results" / f"{name}.log", "w", encoding="utf-8") as log:
        for seed in seeds:
            for precision in precisions:
                results[precision, seed] = run(precision, seed, args.steps, log)
                print(f"{precision} seed {seed}: held-out loss {results[precision, seed]['held_out']:.4f}", flush=True)
    spread = statistics.pstdev(results["fp32", s]["held_out"] for s in seeds) / statistics.mean(
        results["fp32", s]["held_out"] for s in seeds)
    page = [machine.title(f"The demo's model in {', '.join(precisions)}: {args.steps} steps, seeds {args.seeds}", commit), "",
            f"{machine.cpu()['model']}, {machine.cpu()['count']} CPUs, commit {commit}.", "",
            "Held-out loss after the last step, and its distance to fp32's from the same seed:", "",
            *table(results, precisions, seeds), "",
            f"fp32's own spread over the seeds is {100 * spread:.2f} %. "
            + " ".join(f"{p}: at most {100 * worst(results, p, seeds):.2f} % (goal 1 %), "
                       f"{sum(results[p, s]['skipped'] for s in seeds)} steps skipped."
                       for p in precisions if p != "fp32"), "",
            "Curves: docs/precision.svg. Every loss: the log beside this page (bench/run-precision)."]
    (ROOT / "bench" / "results" / f"{name}.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    curves = {p: [results[p, s]["losses"] for s in seeds] for p in precisions}
    (ROOT / "docs" / "precision.svg").write_text(picture.draw(curves), encoding="utf-8")
    print("\n".join(page))
    return 0 if all(worst(results, p, seeds) <= LIMIT for p in precisions if p != "fp32") else 1


if __name__ == "__main__":
    sys.exit(main())
