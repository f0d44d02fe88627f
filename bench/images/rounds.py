"""One optimizer step of ResNet-50 and ViT-B/16 on 32 images of 224 x 224 beside torchvision's in PyTorch, in turn.

    bench/run-images [--only resnet-50,vit-b-16] [--precision fp32,bf16] [--modes eager] [--rounds 3] [--threads 2]

A ratio is the median of the rounds' own. Peaks are the kernel's VmHWM.
"""
import argparse
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

from processes import Side  # noqa: E402
from report import MIB, against, table  # noqa: E402
from turns import take_turns  # noqa: E402
from workplace import Workplace, add_arguments, opening  # noqa: E402

BATCH = 32
# Goals: the factor of PyTorch's images/s by mode, and the share of its eager peak.
NETWORKS = {
    "resnet-50": dict(torchvision="resnet50", steps=2, eager=1.3, compiled=1.15, memory={"fp32": 0.60, "bf16": 0.60}),
    "vit-b-16": dict(torchvision="vit_b_16", steps=1, eager=1.4, compiled=None, memory={"fp32": 0.55, "bf16": 0.55}),
}
RUN = """task: image_classification
model: {{preset: {preset}}}
data: {{train: train, images: {{size: 224}}}}
training: {{global_batch_size: {batch}, micro_batch_size: {batch}, max_steps: 1000, learning_rate: 3.0e-4, max_grad_norm: null}}
output: {{dir: out}}
"""


def write_images(folder):
    """A picture of each class: `bench step` draws its images, and reads from the data which classes there are."""
    from PIL import Image
    for number, name in enumerate(("circle", "square", "triangle")):
        (folder / "train" / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (256, 256), (80 * number, 40, 200)).save(folder / "train" / name / "0.png")


def sides(args, name, precision, log):
    network = NETWORKS[name]
    run = args.work / f"{name}.yaml"
    run.write_text(RUN.format(preset=name, batch=BATCH).replace("train: train", f"train: {args.work / 'train'}")
                   .replace("dir: out", f"dir: {args.work / 'out'}"))
    ours = [args.binary, "bench", "step", run, f"training.precision={precision}", f"runtime.threads={args.threads}", "--json",
            "--interactive"]
    theirs = [sys.executable, HERE / "peer.py", "--network", network["torchvision"], "--batch", BATCH, "--precision", precision,
              "--threads", args.threads]
    return [Side("plimsoll", [str(word) for word in ours], log),
            *(Side(mode, [str(word) for word in [*theirs, "--mode", mode]], log) for mode in args.modes)]


def measure(args, name, precision, log):
    return take_turns(sides(args, name, precision, log), args.rounds, NETWORKS[name]["steps"], f"{name} in {precision}")


def rate(event):
    return event["images"] / event["seconds"]


def goal_rows(results):
    for (name, precision), result in results.items():
        ours = result["rounds"]["plimsoll"]
        for mode, theirs in result["rounds"].items():
            if mode == "plimsoll":
                continue
            ratio = statistics.median(rate(a) / rate(b) for a, b in zip(ours, theirs))
            yield [name, precision, f"images/s against {mode}", *against(ratio, NETWORKS[name][mode])]
            share = result["peaks"]["plimsoll"] / result["peaks"][mode]
            goal = NETWORKS[name]["memory"][precision] if mode == "eager" else None
            yield [name, precision, f"peak memory against {mode}", *against(share, goal, at_most=True)]
        yield [name, precision, "measured peak over planned", *against(result["peaks"]["plimsoll"] / result["planned"], 1, at_most=True)]


def round_rows(results):
    for (name, precision), result in results.items():
        for side, rounds in result["rounds"].items():
            rates = [rate(event) for event in rounds]
            foreign = statistics.median(event["foreign_cores"] for event in rounds)
            yield [name, precision, side, f"{statistics.median(rates):.2f}", f"{min(rates):.2f}–{max(rates):.2f}",
                   f"{result['peaks'][side] / MIB:,.0f}", f"{foreign:.2f}"]


def page(about, args, results):
    conditions = f"{BATCH} images of 224 x 224 a step, AdamW, {args.threads} threads"
    return f"""{opening(about, "A training step on images against PyTorch", conditions)}
- PyTorch: torchvision's networks in channels_last; ratios are the median of the rounds' own, peaks the kernel's VmHWM

## Goals

{table(["network", "precision", "figure", "measured", "goal", ""], list(goal_rows(results)), left=3)}

## Rounds

{table(["network", "precision", "side", "images/s", "between", "peak, MiB", "foreign cores"], list(round_rows(results)), left=3)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-images", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, comma separated")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--modes", default="eager", help="eager, compiled or both, comma separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, 1)
    args = parser.parse_args()
    args.modes = args.modes.split(",")
    with Workplace(args, "images", "bench/run-images") as place:
        write_images(args.work)
        place.publish(page(place.about, args, {(name, precision): measure(args, name, precision, place.log)
                                               for name in args.only.split(",") for precision in args.precision.split(",")}))


if __name__ == "__main__":
    main()
