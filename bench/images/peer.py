"""The peer of `plimsoll bench step` for images: one optimizer step of a network of torchvision, as its users write it.

    python peer.py --network resnet50 --batch 32 --mode eager|compiled --precision fp32|bf16

Random weights, random images in the channels_last layout, AdamW (fused), no clipping, the loss read each step. It speaks the
protocol of bench/step/peer.py.
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "step"))

from peer import build_optimizer, peak_rss_bytes, say, serve  # noqa: E402

SIDE, CLASSES = 224, 3


def build_step(torch, args):
    import torchvision
    torch.manual_seed(args.seed)
    network = getattr(torchvision.models, args.network)(num_classes=CLASSES).to(memory_format=torch.channels_last).train()
    optimizer, kind = build_optimizer(torch, list(network.parameters()))
    model = torch.compile(network) if args.mode == "compiled" else network

    def step(images, labels):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step, kind


def run_round(torch, args, step, count):
    batches = [(torch.randn(args.batch, 3, SIDE, SIDE).to(memory_format=torch.channels_last), torch.randint(0, CLASSES, (args.batch,)))
               for _ in range(count)]
    started = time.perf_counter()
    for images, labels in batches:
        step(images, labels)
    say("round", steps=count, seconds=time.perf_counter() - started, images=count * args.batch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", required=True, help="a function of torchvision.models")
    parser.add_argument("--batch", type=int, required=True, help="images a step")
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    import torch
    torch.set_num_threads(args.threads)
    step, kind = build_step(torch, args)
    say("ready", mode=args.mode, torch=torch.__version__, optimizer=kind, threads=torch.get_num_threads())
    steps = serve(lambda count, _: run_round(torch, args, step, count))
    say("summary", steps=steps, measured_peak_bytes=peak_rss_bytes())


if __name__ == "__main__":
    main()
