"""A step that trains a head over a frozen network, beside an evaluation of the same images: a step should cost what forward and
the head cost, in the memory of an evaluation.

    bench/run-frozen [--only resnet-50,vit-b-16] [--precision fp32,bf16] [--rounds 3] [--threads 2]

Steps on drawn images are those of `plimsoll bench step`. An evaluation's seconds are the difference of two that read a pack of
pixels, of 32 and of 160 images, so that planning, weights and the start are left out. Peaks are the kernel's. Processor
time is what a busy machine changes least; an evaluation's has the reading of its pixels too.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from processes import Side, SideFailed  # noqa: E402
from report import MIB, against, table  # noqa: E402
from workplace import Workplace, add_arguments, opening, progress  # noqa: E402

BATCH, CLASSES = 32, 3
FEW, MANY = BATCH, 5 * BATCH  # images of the two evaluations
NETWORKS = {"resnet-50": dict(frozen="resnet.*", steps=4), "vit-b-16": dict(frozen="vit.*", steps=2)}


def write_images(args, log):
    from PIL import Image
    for number in range(MANY):
        place = args.work / "images" / "abc"[number % CLASSES]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (224, 224), (number, 40, 255 - number)).save(place / f"{number}.png")
    pack = [args.binary, "data", "pack", "--input", args.work / "images", "--output", args.work / "images.pack", "--format", "u8"]
    subprocess.run([str(word) for word in pack], check=True, stdout=log.file, stderr=log.stderr)


def command(args, name, precision, *words):
    run, trained = args.work / f"{name}.yaml", args.work / name / "final"
    model = {"path": str(trained)} if trained.exists() else {"preset": name}
    data = str(args.work / "images.pack")
    run.write_text(json.dumps({
        "task": "image_classification", "model": model,
        "data": {"train": data, "eval": data, "images": {"size": 224, "augment": ["flip"]}, "cache_dir": str(args.work / "cache")},
        "training": {"global_batch_size": BATCH, "micro_batch_size": BATCH, "max_steps": 1000, "learning_rate": 0.01,
                     "freeze": [NETWORKS[name]["frozen"]], "precision": precision},
        "runtime": {"threads": args.threads}, "output": {"dir": str(args.work / name)}}))
    return [str(word) for word in [args.binary, *words, run, "--json"]]


def make_model(args, name, log):
    """A folder with the classes of the images, of one step from random weights."""
    words = command(args, name, "bf16", "train") + ["training.max_steps=1"]
    log.write(f"$ {machine.shown(words)}\n")
    subprocess.run(words, check=True, stdout=log.file, stderr=log.stderr)


def evaluate(args, name, precision, images, log):
    """Seconds from start to end, peak bytes, and the plan."""
    words = command(args, name, precision, "eval") + [f"data.max_eval_samples={images}"]
    log.write(f"$ {machine.shown(words)}\n")
    started = time.perf_counter()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log.stderr, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    log.write(text)
    if process.returncode != 0:
        raise SideFailed(f"eval ended with exit code {process.returncode}")
    plan = next(event for event in map(json.loads, text.splitlines()) if event.get("event") == "plan")
    return {"seconds": seconds, "processor": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024, "planned": plan["process_peak_bytes"]}


def measure(args, name, precision, log):
    steps = NETWORKS[name]["steps"]
    side = Side("step", command(args, name, precision, "bench", "step") + ["--interactive"], log)
    rounds = []
    try:
        side.go(1)
        for number in range(args.rounds):
            progress(f"{name} in {precision}, round {number + 1} of {args.rounds}")
            before = side.cpu_seconds()
            step = side.go(steps)["seconds"] / steps
            processor = (side.cpu_seconds() - before) / steps
            few, many = (evaluate(args, name, precision, images, log) for images in (FEW, MANY))
            share = BATCH / (MANY - FEW)
            rounds.append({"step": step, "step, processor": processor, "evaluation": (many["seconds"] - few["seconds"]) * share,
                           "evaluation, processor": (many["processor"] - few["processor"]) * share,
                           "peak": many["peak"], "planned": many["planned"]})
        peak = side.peak_bytes()
        return {"rounds": rounds, "peak": peak, "planned": side.last("plan")["process_peak_bytes"]}
    finally:
        side.stop()


def goal_rows(results):
    for (name, precision), result in results.items():
        rounds = result["rounds"]
        for what, end in (("seconds", ""), ("processor seconds", ", processor")):
            ratio = statistics.median(each["step" + end] / each["evaluation" + end] for each in rounds)
            yield [name, precision, f"{what} of a step over an evaluation's", *against(ratio, 1.05, at_most=True)]
        yield [name, precision, "planned peak over an evaluation's", *against(result["planned"] / rounds[0]["planned"], 1.10, at_most=True)]
        measured = result["peak"] / max(each["peak"] for each in rounds)
        yield [name, precision, "measured peak over an evaluation's", *against(measured, 1.10, at_most=True)]


def round_rows(results):
    for (name, precision), result in results.items():
        for what, peak, planned in (("step", result["peak"], result["planned"]),
                                    ("evaluation", max(each["peak"] for each in result["rounds"]), result["rounds"][0]["planned"]),
                                    ("step, processor", 0, 0), ("evaluation, processor", 0, 0)):
            seconds = [each[what] for each in result["rounds"]]
            yield [name, precision, what, f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}–{max(seconds):.3f}",
                   *(f"{each / MIB:,.0f}" if each else "" for each in (peak, planned))]


def page(about, args, results):
    conditions = f"{BATCH} images of 224 x 224, {CLASSES} classes, AdamW, {args.threads} threads"
    return f"""{opening(about, "Training a head over a frozen network", conditions)}
- Ratios are the median of the rounds' own; an evaluation is that of {BATCH} images, forward and head

## Goals

{table(["network", "precision", "figure", "measured", "goal", ""], list(goal_rows(results)), left=3)}

## Rounds

{table(["network", "precision", "", "seconds", "between", "peak, MiB", "planned, MiB"], list(round_rows(results)), left=3)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-frozen", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, comma separated")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, 1)
    args = parser.parse_args()
    with Workplace(args, "frozen", "bench/run-frozen") as place:
        write_images(args, place.log)
        for name in args.only.split(","):
            make_model(args, name, place.log)
        place.publish(page(place.about, args, {(name, precision): measure(args, name, precision, place.log)
                                               for name in args.only.split(",") for precision in args.precision.split(",")}))


if __name__ == "__main__":
    main()
