"""Loading images beside torchvision's pipelines on the same files, in turn: images a second of CPU time.

    bench/run-image-loader [--images 512] [--rounds 3] [--work FOLDER]

JPEGs of 500 x 375 pixels become random crops of 224 x 224, flipped at random, as bytes in batches of 32. Plimsoll: one worker of
`bench data`, with Pillow's pixels. Peers, in one process with one thread: ImageFolder, Pillow and transforms.v2, as its users write
it; and torchvision.io.decode_jpeg (libjpeg-turbo) with transforms.v2 on tensors. Packs are Plimsoll's, of the files and of decoded
pixels whose shorter side is 256.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "step"))

import machine  # noqa: E402
from image_ladder import FILES, JPEG, MODEL, U8, write_photos  # noqa: E402
from report import against, table  # noqa: E402
from rounds import run  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

OURS = {"files": FILES, "pack of the files": JPEG, "pack of pixels": U8}
PEERS = {"torchvision + Pillow": "pillow", "torchvision.io, tensors": "turbo"}
PEER = """
import json, resource, sys, time
import torch, torchvision
from torch.utils.data import DataLoader
from torchvision.transforms import v2
torch.set_num_threads(1)
folder, how = sys.argv[1:]
crop = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
if how == "pillow":
    data = torchvision.datasets.ImageFolder(folder, v2.Compose([*crop, v2.PILToTensor()]))
else:
    def decoded(path):
        return torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)
    data = torchvision.datasets.ImageFolder(folder, v2.Compose(crop), loader=decoded)

def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

def epochs(seconds):
    images, start, before = 0, time.perf_counter(), cpu()
    while images == 0 or time.perf_counter() - start < seconds:
        images += sum(len(labels) for _, labels in DataLoader(data, batch_size=32, shuffle=True))
    return images / (cpu() - before)

epochs(0)
print(json.dumps({"per_cpu_second": epochs(3)}))
"""


def ours(args, log, data):
    lines = run(args, log, [pathlib.Path(args.binary).resolve(), "bench", "data", args.work / "run.yaml", "--json", "--milliseconds", 3000,
                            f"data.train={args.work / data}"]).splitlines()
    return next(event for event in map(json.loads, lines) if event.get("name") == "ready, warm cache")["samples_per_cpu_second"]


def theirs(args, log, how):
    return json.loads(run(args, log, [sys.executable, "-c", PEER, args.work / FILES, how]).splitlines()[-1])["per_cpu_second"]


def measure(args, log):
    (args.work / "run.yaml").write_text(json.dumps({
        "model": {"config": MODEL, "init": "random", "norm_statistics": "batch"},
        "data": {"train": str(args.work / FILES), "images": {"size": 224, "augment": ["random_resized_crop", "flip"]},
                 "cache_dir": str(args.work / "cache")},
        "training": {"global_batch_size": 32, "max_steps": 1000, "learning_rate": 0.01}, "output": {"dir": str(args.work / "out")}}))
    for data, more in ((JPEG, []), (U8, ["--format", "u8", "--shortest", 256])):
        run(args, log, [args.binary, "data", "pack", "--input", args.work / FILES, "--output", args.work / data, *more])
    rounds = []
    for number in range(args.rounds):
        progress(f"round {number + 1} of {args.rounds}")
        rounds.append({name: ours(args, log, data) for name, data in OURS.items()} | {name: theirs(args, log, how) for name, how in PEERS.items()})
    return rounds


def page(r):
    def ratio(side, other):
        return statistics.median(each[side] / each[other] for each in r["rounds"])

    goals = [["files against torchvision + Pillow", *against(ratio("files", "torchvision + Pillow"), 2.0)],
             ["files against torchvision.io, tensors", *against(ratio("files", "torchvision.io, tensors"), 1.3)],
             ["pack of the files against files", *against(ratio("pack of the files", "files"), None)],
             ["pack of pixels against files", *against(ratio("pack of pixels", "files"), 5)],
             ["pack of pixels against torchvision + Pillow", *against(ratio("pack of pixels", "torchvision + Pillow"), None)]]
    rates = [[side, f"{statistics.median(each[side] for each in r['rounds']):,.0f}",
              f"{min(each[side] for each in r['rounds']):,.0f}–{max(each[side] for each in r['rounds']):,.0f}"] for side in (*OURS, *PEERS)]
    return f"""{machine.title(f"Loading images, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; every line the programs printed is in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(r["cpu"])}
- {r["images"]} JPEGs of 500 x 375, random crops of 224 x 224, flipped at random; batches of 32 as bytes; torchvision {r["torchvision"]}
- Medians of {len(r["rounds"])} rounds in turn; load average at the start {r["load"]}

{table(["images a second of CPU time", "measured", "goal", ""], goals, left=1)}

{table(["side", "images per CPU second", "between"], rates, left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-image-loader", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    add_arguments(parser, gigabytes=1)
    args = parser.parse_args()
    with Workplace(args, "image-loader", "bench/run-image-loader") as work:
        progress("writing images")
        write_photos(args.work / FILES, args.images)
        rounds = measure(args, work.log)
    version = subprocess.run([sys.executable, "-c", "import torchvision; print(torchvision.__version__)"], stdout=subprocess.PIPE, text=True, check=True)
    work.publish(page(work.about | dict(rounds=rounds, images=args.images, torchvision=version.stdout.strip())))


if __name__ == "__main__":
    main()
