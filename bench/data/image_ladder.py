"""The ladder of an image run: photographs of 500 x 375 pixels as JPEG, and a small network that computes faster than they are decoded.

    bench/run-image-ladder [--images 512] [--active 12] [--work FOLDER]

Each rung changes how images are loaded and leaves what is trained: `plimsoll profile` runs steps of it. A rung has the share of
a step that does not wait for data, images a second, and what the verdict names first. `plimsoll bench data` says what a thread
spends on an image of the files, of the pack of files and of the pack of decoded pixels.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "step"))

import machine  # noqa: E402
from report import table  # noqa: E402
from rounds import run  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

MODEL = {"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "embedding_size": 8, "hidden_sizes": [8, 16],
         "depths": [1, 1], "layer_type": "basic"}
FILES, JPEG, U8 = "photos", "photos.pack", "photos-256.pack"
ALONE = ["data.num_workers=1", "data.prefetch_factor=1", "runtime.threads=1"]
# Each stands on the one before it.
RUNGS = [("files, one thread that reads ahead by a step", FILES, ALONE),
         ("two threads decode", FILES, ["data.num_workers=2", "data.prefetch_factor=1", "runtime.threads=1"]),
         ("they read ahead by four steps", FILES, ["data.num_workers=2", "data.prefetch_factor=4", "runtime.threads=1"]),
         ("a pack of the files", JPEG, ["data.num_workers=2", "data.prefetch_factor=4", "runtime.threads=1"]),
         ("a pack of pixels, shorter side 256", U8, ["data.num_workers=2", "data.prefetch_factor=4", "runtime.threads=1"]),
         ("data.images.cache=u8: pixels of the model's size", FILES,
          ["data.num_workers=2", "data.prefetch_factor=4", "runtime.threads=1", "data.images.cache=u8"])]


def write_photos(folder, count):
    """JPEGs with edges and noise, as photographs have them, in two classes."""
    import numpy
    import PIL.Image

    rng = numpy.random.default_rng(0)
    down, across = numpy.mgrid[0:375, 0:500].astype(numpy.float32)
    for number in range(count):
        waves = [numpy.sin(across / rng.uniform(5, 60) + down / rng.uniform(5, 60) + rng.uniform(0, 6)) for _ in range(3)]
        pixels = 128 + 90 * numpy.stack(waves, 2) + rng.normal(0, 12, (375, 500, 3))
        place = folder / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(place / f"{number}.jpg", quality=90)


def measure(args, log):
    """(ladder, loading): rows of both tables."""
    run_file = args.work / "run.yaml"
    run_file.write_text(json.dumps({
        "model": {"config": MODEL, "init": "random", "norm_statistics": "batch"},
        "data": {"train": str(args.work / FILES), "images": {"size": 64, "resize": "shortest", "crop": "center"},
                 "cache_dir": str(args.work / "cache")},
        "training": {"global_batch_size": 32, "max_steps": 1000, "learning_rate": 0.01}, "output": {"dir": str(args.work / "out")}}))
    binary = pathlib.Path(args.binary).resolve()
    run(args, log, [binary, "data", "pack", "--input", args.work / FILES, "--output", args.work / JPEG])
    run(args, log, [binary, "data", "pack", "--input", args.work / FILES, "--output", args.work / U8, "--format", "u8", "--shortest", 256])
    ladder, loading = [], []
    for name, data, settings in RUNGS:
        progress(name)
        lines = run(args, log, [binary, "profile", run_file, "--json", f"data.train={args.work / data}", *settings, "--active", args.active,
                                "--output", args.work / "profile"]).splitlines()
        verdict = next(event for event in map(json.loads, lines) if event["event"] == "verdict")
        waits = sum(finding["share"] for finding in verdict["findings"] if finding["what"].startswith("waiting for data"))
        first = verdict["findings"][0]
        ladder.append([name, f"{100 * (1 - waits):.0f} %", f"{32 / verdict['step_seconds']:,.0f}", f"{first['what']}, {100 * first['share']:.0f} %"])
    for name, data, more in (("files", FILES, []), ("pack of the files", JPEG, []), ("pack of pixels", U8, [])):
        lines = run(args, log, [binary, "bench", "data", run_file, "--json", f"data.train={args.work / data}", *more]).splitlines()
        rungs = [event for event in map(json.loads, lines) if event["event"] == "rung"]
        warm = next(event for event in rungs if event["name"] == "ready, warm cache")
        parts = warm["image_seconds"]
        loading.append([name, *(f"{1e6 * parts[part]:,.0f}" for part in ("reading", "decoding", "augmenting")),
                        f"{warm['samples_per_cpu_second']:,.0f}", warm["bound_by"]])
    return ladder, loading


def page(r):
    cpu = r["cpu"]
    return f"""{machine.title(f"The ladder of an image run, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; every line the programs printed is in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(cpu)}
- {r["images"]} JPEGs of 500 x 375, resized and cropped to 64 x 64; batches of 32, one thread computes; load average at the start {r["load"]}

{table(["images", "share of a step that does not wait for data", "images/s", "first finding"], r["ladder"], left=1)}

## What a thread spends on an image, in microseconds

{table(["images", "reading", "decoding", "resizing and augmenting", "images per CPU second", "bound by"], r["loading"], left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-image-ladder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--active", type=int, default=12)
    add_arguments(parser, gigabytes=1)
    args = parser.parse_args()
    with Workplace(args, "image-ladder", "bench/run-image-ladder") as work:
        progress("writing images")
        write_photos(args.work / FILES, args.images)
        ladder, loading = measure(args, work.log)
    work.publish(page(work.about | dict(ladder=ladder, loading=loading, images=args.images)))


if __name__ == "__main__":
    main()
