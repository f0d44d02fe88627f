"""Trains the demo's model, then rounds the operands of its linear layers to each format: which layers suffer.

    bench/run-formats [--steps 720] [--active 4]

The page has for each format and operand the layers with the lowest ratio of signal to noise; docs/formats.svg draws
what becomes 0 in each layer.
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

import fp8_picture  # noqa: E402
import machine  # noqa: E402


def plimsoll(*arguments):
    done = subprocess.run(["build/plimsoll", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"formats: plimsoll {' '.join(arguments)} left with {done.returncode}: {done.stderr}")
    return done.stdout


def rounded(steps, active):
    """Objects of each layer's operands in each format, of the trained model's next steps in bf16."""
    with tempfile.TemporaryDirectory() as scratch:
        plimsoll("train", "examples/demo/run.yaml", "--resume", "never", "training.precision=bf16", f"training.max_steps={steps}",
                 "training.eval_steps=0", f"output.dir={scratch}/run", "data.cache_dir=demo/run/data", "memory.budget=1GiB")
        lines = plimsoll("profile", "examples/demo/run.yaml", "--formats", "--json", "--active", str(active), f"--output={scratch}/profile",
                         f"model.path={scratch}/run/final", "model.init=pretrained", "training.precision=bf16", f"output.dir={scratch}/next",
                         "training.learning_rate=1e-5", "data.cache_dir=demo/run/data", "memory.budget=1GiB")
    events = [json.loads(line) for line in lines.splitlines()]
    return [e for e in events if e["event"] == "format"]


def table(events):
    out = ["| operand | format | mean, dB | lowest, dB | of | become 0, mean | most |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for operand, what in fp8_picture.OPERANDS.items():
        for name in fp8_picture.FORMATS:
            some = [e for e in events if e["operand"] == operand and e["as"] == name and e["snr_db"] is not None]
            least = min(some, key=lambda e: e["snr_db"])
            lost = [e["underflow_share"] for e in some]
            out.append(f"| {what} | {name} | {statistics.mean(e['snr_db'] for e in some):.1f} | {least['snr_db']:.1f} | `{least['layer']}` | "
                       f"{100 * statistics.mean(lost):.1f} % | {100 * max(lost):.1f} % |")
    return out


def main():
    parser = argparse.ArgumentParser(prog="bench/run-formats", description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=720)
    parser.add_argument("--active", type=int, default=4, help="steps that are trained further, of which the last is rounded")
    args = parser.parse_args()
    name, commit = f"{datetime.date.today()}-formats-{machine.slug(machine.cpu())}", machine.commit()
    events = rounded(args.steps, args.active)
    log = "".join(json.dumps(e) + "\n" for e in events)
    (ROOT / "bench" / "results" / f"{name}.log").write_text(log, encoding="utf-8")
    page = [machine.title(f"What formats leave of the demo's model after {args.steps} steps", commit), "",
            f"{machine.cpu()['model']}, commit {commit}. The last of {args.active} further steps in bf16, its last micro-batch. Formats with "
            "one scale per tensor take it from the tensor.", "", *table(events), "", "Each layer: the log beside this page, and docs/formats.svg (bench/run-formats)."]
    (ROOT / "bench" / "results" / f"{name}.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    (ROOT / "docs" / "formats.svg").write_text(fp8_picture.draw_formats(events), encoding="utf-8")
    print("\n".join(page))


if __name__ == "__main__":
    main()
