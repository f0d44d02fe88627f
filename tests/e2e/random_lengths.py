#!/usr/bin/env python3
"""Many steps over documents of random lengths: the process's resident memory is flat after the start.

    random_lengths.py [--binary build/plimsoll] [--steps 10000] [--length 256]

Documents have from 1 to `length` tokens. Each way of taking them in (padded, padded to buckets, packed, joined) is a run;
its resident memory is read throughout. Prints the most of the first hundredth of the steps and of the rest, and exits
with 1 where memory has grown, or the planned peak was exceeded.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from combinations import LLAMA, write_data

WAYS = ["data.packing=pad", "data.packing=pad data.buckets=4", "data.packing=best_fit", "data.packing=stream"]


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


def run(binary, folder, way, steps):
    """Most resident bytes by step, and the summary."""
    subprocess.run(["rm", "-rf", str(folder / "out")], check=True)
    process = subprocess.Popen([binary, "train", "run.yaml", "--json", *way.split()], cwd=folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first = rest = 0
    summary = None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step":
            if event["step"] <= steps // 100:
                first = max(first, resident(process.pid))
            else:
                rest = max(rest, resident(process.pid))
        if event["event"] == "summary":
            summary = event
    if process.wait() != 0 or summary is None:
        sys.exit(f"{way}: exit code {process.returncode}")
    return first, rest, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--length", type=int, default=256)
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    dice = random.Random(7)
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_data(folder, dice)
        # A letter is a token.
        texts = ["".join(dice.choice("abcdefghij") for _ in range(dice.randint(1, arguments.length))) for _ in range(3000)]
        (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (folder / "run.yaml").write_text(
            f"model: {{config: {LLAMA}, init: random}}\n"
            f"data: {{train: text.jsonl, sequence_length: {arguments.length}, tokenizer: tokenizer.json}}\n"
            f"training: {{global_batch_size: 4, max_steps: {arguments.steps}, learning_rate: 1.0e-4, logging_steps: 1}}\n"
            "output: {dir: out}\n")
        for way in WAYS:
            first, rest, summary = run(binary, folder, way, arguments.steps)
            grown = max(0, rest - first)
            bad = grown > 1 << 20 or summary["measured_peak_bytes"] > summary["planned_peak_bytes"]
            failed = failed or bad
            print(f"{way:32} resident at first {first >> 10:,} KiB, later {rest >> 10:,} KiB; planned peak "
                  f"{summary['planned_peak_bytes'] >> 10:,} KiB, measured {summary['measured_peak_bytes'] >> 10:,} KiB, "
                  f"allocations {summary['allocations_after_first_step']}{'  FAILED' if bad else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
