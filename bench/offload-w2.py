#!/usr/bin/env python3
"""W2's shape (SmolLM-135M, 1 x 512, fp32, AdamW) with everything on the disk, beside the plain run.

    offload-w2.py [--binary build/plimsoll] [--steps 4] [--dir DIR] [KEY=VALUE…]

DIR, on the disk to measure, takes about 3 GiB. Four runs in turn: plain; all classes on the disk; within 0.12 of the 3,773
MiB of PyTorch's process; at the least budget that the planner names. Before and behind each the disk alone: direct reads and
writes of 4 MiB, each way by itself and both at once, for the better of which the seconds of a step's bytes are printed beside
the step's: the floor. Of each run: planned and measured peak of the process, the median step, bytes moved. Losses must be
equal.
"""
import argparse
import pathlib
import re
import statistics
import struct
import subprocess
import tempfile

from offload_disk import bandwidth, floor, lines

ALL = "{optimizer: disk, parameters: disk, gradients: disk, activations: disk}"
PYTORCH = 3773 << 20


def npy(path, count):
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % count
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    values = b"".join(struct.pack("<H", i * 7919 % 49152) for i in range(count))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def train(binary, folder, steps, settings):
    return lines([binary, "train", "run.yaml", "--json", "--resume=never", f"training.max_steps={steps}", *settings], folder)


def report(name, events, before, after):
    plan = next(e for e in events if e["event"] == "plan")
    summary = next(e for e in events if e["event"] == "summary")
    steps = [e for e in events if e["event"] == "step"]
    seconds = statistics.median(e["step_seconds"] for e in steps[1:])
    choices = plan["choices"]
    out, back = choices["offload_out_bytes"], choices["offload_in_bytes"]
    alone = min(floor(rates, out, back) for rates in (before, after))
    print(f"{name}: peak {summary['measured_peak_bytes'] / 2**20:.1f} MiB of {summary['planned_peak_bytes'] / 2**20:.1f} planned, "
          f"{summary['measured_peak_bytes'] / PYTORCH:.3f} of 3,773 MiB; step {seconds:.2f} s; out {out / 2**20:.0f} MiB, "
          f"in {back / 2**20:.0f} MiB a step: the disk alone {alone:.2f} s; "
          f"allocations {summary['allocations_after_first_step']}; offload {choices['offload']}", flush=True)
    return [e["loss"] for e in steps]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--dir")
    parser.add_argument("settings", nargs="*")
    given = parser.parse_args()
    binary = str(pathlib.Path(given.binary).resolve())
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = pathlib.Path(name)
        npy(folder / "data.npy", 512 * (given.steps + 2))
        (folder / "run.yaml").write_text(
            "model: {preset: smollm-135m, init: random}\ndata: {train: data.npy, sequence_length: 512}\n"
            "training: {global_batch_size: 1, learning_rate: 1.0e-4}\noutput: {dir: out}\n")
        refused = subprocess.run([binary, "plan", "run.yaml", "memory.budget=100MiB", *given.settings], cwd=folder, text=True,
                                 capture_output=True).stderr
        least = re.search(r"\((\d+) bytes\)", refused).group(1)
        losses, before = [], bandwidth(folder)
        for what, settings in (("plain", []), ("all on the disk", ["memory.offload=" + ALL]),
                               ("0.12 of PyTorch's", [f"memory.budget={int(0.12 * PYTORCH)}"]),
                               ("least budget", [f"memory.budget={least}"])):
            events = train(binary, folder, given.steps, [*settings, *given.settings])
            after = bandwidth(folder)
            print("disk: {:.2f} GB/s written, {:.2f} read, {:.2f} both at once".format(*(rate / 1e9 for rate in after)), flush=True)
            losses.append(report(what, events, before, after))
            before = after
        if losses.count(losses[0]) != len(losses):
            raise SystemExit("losses differ")


if __name__ == "__main__":
    main()
