"""PyTorch's data parallel training of a Llama over gloo, for torchrun: the peer of `plimsoll launch`.

    torchrun --nproc-per-node 2 peer.py --config w2/config.json --batch 1 --tokens 512 --mode ddp|fsdp2 --steps 5

Random weights, random tokens, fp32, AdamW (fused), clipping at norm 1. Rank 0 prints a line of JSON a step; every rank one with
its peak (the kernel's VmHWM).
"""
import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "step"))

from peer import build_model, build_optimizer, peak_rss_bytes, say  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="a config.json of transformers")
    parser.add_argument("--batch", type=int, required=True, help="sequences a step and rank")
    parser.add_argument("--tokens", type=int, required=True, help="tokens a sequence")
    parser.add_argument("--mode", choices=["ddp", "fsdp2"], default="ddp")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

    import torch
    torch.set_num_threads(args.threads)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(42)
    model = build_model(args.config)
    vocabulary = model.config.vocab_size
    if args.mode == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    else:
        from torch.distributed.fsdp import fully_shard
        mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for block in model.model.layers:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer, _ = build_optimizer(torch, list(model.parameters()))
    first = torch.distributed.get_rank() == 0
    for number in range(args.steps):
        ids = torch.randint(0, vocabulary, (args.batch, args.tokens))
        started = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if first:
            say("step", step=number + 1, step_seconds=time.perf_counter() - started)
    say("summary", rank=torch.distributed.get_rank(), measured_peak_bytes=peak_rss_bytes())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
