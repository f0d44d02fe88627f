"""Steps on an NVIDIA card beside PyTorch's, in turn, as a table in Markdown. Called by bench/run-card.

Each work and precision: both sides start, then rounds in turn; the median of the rounds' ratios. What a side takes of the card is by
how much nvidia-smi's figure grew from before it started to behind its first steps, the context included.
"""
import argparse
import io
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/step"))
import works as catalogue  # noqa: E402
from processes import Side, SideFailed  # noqa: E402


class Log(io.StringIO):
    stderr = sys.stderr


def used():
    """MiB that are taken of the card by anybody."""
    text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=False).stdout
    return int(text.split()[0])


def command_of(side, work, precision, build):
    folder = catalogue.HERE / work["folder"]
    if side == "plimsoll":
        return [str(build / "plimsoll"), "bench", "step", str(folder.relative_to(ROOT) / "run.yaml"), "runtime.device=cuda",
                f"training.precision={precision}", "--json", "--interactive"]
    return [sys.executable, str(catalogue.HERE / "peer.py"), "--config", str(folder / "config.json"), "--batch", str(work["batch"]),
            "--tokens", str(work["tokens"]), "--mode", side, "--precision", precision, "--device", "cuda", "--threads", "8"]


def compare(name, precision, args):
    work = catalogue.WORKS[name]
    sides, taken = {}, {}
    try:
        for side in ["plimsoll", *filter(None, args.peers.split(","))]:
            before = used()
            sides[side] = Side(side, command_of(side, work, precision, args.build), Log())
            try:
                sides[side].go(args.warm)
            except SideFailed as failure:
                if side == "plimsoll":
                    raise
                print(f"{name} {precision}: {failure}", flush=True)  # the others are compared without it
                sides.pop(side).stop()
                continue
            taken[side] = used() - before
        seconds = {side: [] for side in sides}
        for number in range(args.rounds):
            for side in (list(sides) if number % 2 == 0 else list(reversed(sides))):
                event = sides[side].go(args.steps)
                seconds[side].append(event["seconds"] / event["steps"])
        summaries = {side: sides[side].finish() for side in sides}
    finally:
        for side in sides.values():
            side.stop()
    plan = summaries["plimsoll"]["planned_peak_bytes"] / 2**20
    for side in sides:
        ratio = statistics.median(theirs / ours for theirs, ours in zip(seconds[side], seconds["plimsoll"]))
        step = statistics.median(seconds[side])
        tokens = work["batch"] * work["tokens"] / step
        print(f"| {name} | {precision} | {side} | {1e3 * step:.1f} | {tokens:,.0f} | {'–' if side == 'plimsoll' else f'{ratio:.2f}'} | "
              f"{f'{plan:,.0f}' if side == 'plimsoll' else '–'} | {taken[side]:,} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="W1,W2,W2b,W3")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--peers", default="eager")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm", type=int, default=5)
    args = parser.parse_args()
    print("| work | precision | side | ms a step | tokens/s | its time / ours | planned MiB | taken of the card, MiB |")
    print("| --- | --- | --- | --: | --: | --: | --: | --: |", flush=True)
    for name in args.only.split(","):
        for precision in args.precisions.split(","):
            try:
                compare(name, precision, args)
            except SideFailed as failure:
                print(f"{name} {precision}: {failure}", flush=True)


if __name__ == "__main__":
    main()
