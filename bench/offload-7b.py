#!/usr/bin/env python3
"""Steps of the shape of Llama-2-7B on a machine that cannot hold it: weights, and what else it takes, on the disk.

    offload-7b.py [--binary build/plimsoll] [--dir DIR] [--budget 6GiB] [--only lora,full] [--steps 1] [KEY=VALUE…]

DIR, on the disk to measure, takes 10 to 40 GB. One sequence of 512 tokens; bf16 weights drawn at random. `lora`: adapters of rank 16
on q, k, v, o, AdamW; `full`: all of it, without masters, Adafactor, each update where its gradient is complete. Of each: planned
and measured peak of the process, seconds of a step behind the first, bytes moved, and the floor: the longer of the products at the
machine's best rate (`plimsoll bench kernels`) and of the bytes at the disk's (direct reads and writes, measured before).
"""
import argparse
import pathlib
import tempfile

from offload_disk import bandwidth, floor, lines

SHAPE = "model: {preset: llama-2-7b, init: random}\ndata: {sequence_length: 512}\n"
WORKS = {
    "lora": "lora: {r: 16, target_modules: [q_proj, k_proj, v_proj, o_proj]}\n"
            "training: {global_batch_size: 1, max_steps: 10, precision: bf16, state: {weights: bf16}}\n",
    "full": "training: {global_batch_size: 1, max_steps: 10, precision: bf16, optimizer: adafactor, max_grad_norm: 0, "
            "state: {weights: bf16, master_weights: false, gradients: bf16}}\n",
}


def product_rate(binary, folder):
    """Operations a second of the best large product in bf16, as this machine computes it."""
    rows = lines([binary, "bench", "kernels", "--json"], folder)
    return 1e9 * max(row["gflops"] for row in rows if row.get("op") == "linear")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--dir")
    parser.add_argument("--budget", default="6GiB")
    parser.add_argument("--only", default="lora,full")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("settings", nargs="*")
    given = parser.parse_args()
    binary = str(pathlib.Path(given.binary).resolve())
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = pathlib.Path(name)
        rates = bandwidth(folder)
        rate = product_rate(binary, folder)
        print(f"disk: {rates[0] / 1e9:.2f} GB/s written, {rates[1] / 1e9:.2f} GB/s read, {rates[2] / 1e9:.2f} GB/s both at once; products: {rate / 1e9:.0f} GFLOP/s", flush=True)
        for work in given.only.split(","):
            (folder / "run.yaml").write_text(SHAPE + WORKS[work] + f"memory: {{budget: {given.budget}}}\noutput: {{dir: out}}\n")
            events = lines([binary, "bench", "step", "run.yaml", f"--steps={given.steps}", "--json", *given.settings], folder)
            plan, turn, summary = (next(e for e in events if e["event"] == kind) for kind in ("plan", "round", "summary"))
            out, back = plan["choices"]["offload_out_bytes"], plan["choices"]["offload_in_bytes"]
            compute = (plan["step"]["flops"] + plan["step"]["recompute_flops"]) / rate
            disk = floor(rates, out, back)
            seconds = turn["seconds"] / turn["steps"]
            print(f"{work}: peak {summary['measured_peak_bytes'] / 2**20:.0f} MiB of {summary['planned_peak_bytes'] / 2**20:.0f} planned "
                  f"within {given.budget}; step {seconds:.1f} s, {seconds / max(compute, disk):.2f} of the floor (products {compute:.1f} s, disk "
                  f"{disk:.1f} s: out {out / 1e9:.2f} GB, in {back / 1e9:.2f} GB); allocations "
                  f"{summary['allocations_after_first_step']}; offload {plan['choices']['offload']}", flush=True)


if __name__ == "__main__":
    main()
