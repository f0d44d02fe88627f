#!/usr/bin/env python3
"""How long plans take, and whether they are still the same: large models, devices, what lies elsewhere.

    planning.py [--binary build/plimsoll] [--against OTHER] [--only 7b-lora,8b-full] [--rates built-in]

Of each case: processor seconds of `plimsoll plan --json` in user and kernel mode, its most memory, and what is chosen. With --against
another build plans the same, in turn, and what differs between both plans is printed; exits with 1 where the other's plan takes less
time by its own estimate, or fits where this one does not. Goals: 7b-lora 0.5 s, w2 0.2 s, all others that fit 1 s and 200 MiB.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BF16 = "training.precision=bf16 training.state.weights=bf16"
ALL_LINEAR = "lora={r: 16, lora_alpha: 32, target_modules: all-linear}"
ATTENTION = "lora={r: 16, lora_alpha: 32, target_modules: [q_proj, k_proj, v_proj, o_proj]}"
NF4 = "quantization={load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}"
CARD = ["runtime.device=discrete", "runtime.discrete={memory: 80GB, copy_bandwidth: 25GB/s}", "memory.budget=4000GiB",
        "memory.host_budget=2000GiB"]
NOTHING_ELSEWHERE = "memory.offload=none"
DISK = "memory.disk_budget=2000GiB"


def case(preset, length, batch, *settings):
    return [f"model.preset={preset}", f"data.sequence_length={length}", f"training.global_batch_size={batch}", *settings]


CASES = {
    "7b-lora": case("llama-2-7b", 1024, 32, ATTENTION, *BF16.split(), "memory.budget=22.5GiB"),
    "8b-full": case("llama-3-8b", 2048, 8, "memory.budget=150GiB"),
    "8b-full-disk": case("llama-3-8b", 2048, 8, "memory.budget=24GB", DISK),
    "8b-full-too-large": case("llama-3-8b", 2048, 8, "memory.budget=24GB", NOTHING_ELSEWHERE),
    "8b-lora": case("llama-3-8b", 2048, 8, ALL_LINEAR, *BF16.split(), "memory.budget=24GB"),
    "8b-qlora": case("llama-3-8b", 2048, 8, ALL_LINEAR, NF4, "training.precision=bf16", "memory.budget=12GB"),
    "14b-lora": case("qwen2.5-14b", 2048, 8, ALL_LINEAR, *BF16.split(), "memory.budget=40GB"),
    "14b-full-host": case("qwen2.5-14b", 2048, 8, *BF16.split(), *CARD),
    "70b-lora-host": case("llama-3-70b", 2048, 8, ALL_LINEAR, *BF16.split(), *CARD),
    "70b-full-host": case("llama-3-70b", 2048, 8, *BF16.split(), *CARD),
    "70b-full-too-large": case("llama-3-70b", 2048, 8, "memory.budget=640GB", NOTHING_ELSEWHERE),
    "w2": case("smollm-135m", 512, 1, "memory.budget=4GiB"),
    "w2-least": case("smollm-135m", 512, 16, "memory.budget=1GiB", DISK),
}


def plan(binary, folder, settings):
    """The plan's event, or none; processor seconds; MiB."""
    process = subprocess.Popen([binary, "plan", "run.yaml", "--json", *settings], cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    said = process.stdout.read()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    events = [json.loads(line) for line in said.splitlines()]
    event = next((e for e in events if e["event"] == "plan"), None)
    return event, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def chosen(event):
    if event is None:
        return "no plan"
    choices = event["choices"]
    return (f"{'fits' if event['fits'] else 'does not fit'}, {choices['micro_batch_size']} x {choices['grad_accum_steps']}, recompute "
            f"{choices['recompute']}, offload {choices['offload']}, {event['step']['seconds_estimated']:.4g} s a step")


def is_worse(event, other):
    if event is None or other is None:
        return event is None and other is not None
    if event["fits"] != other["fits"]:
        return other["fits"]
    return event["fits"] and event["step"]["seconds_estimated"] > 1.001 * other["step"]["seconds_estimated"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--against")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--rates", default="built-in", help="runtime.profile")
    given = parser.parse_args()
    binaries = [str(pathlib.Path(b).resolve()) for b in (given.binary, given.against) if b]
    worse = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "run.yaml").write_text(
            "model: {preset: gpt2, init: random}\ndata: {shuffle: false}\ntraining: {global_batch_size: 1, max_steps: 10}\n"
            "runtime: {threads: 2}\n")
        for name in given.only.split(","):
            settings = [*CASES[name], f"runtime.profile={given.rates}"]
            results = [plan(binary, folder, settings) for binary in binaries]
            times = " against ".join(f"{seconds:.2f} s, {mib:.0f} MiB" for _, seconds, mib in results)
            print(f"{name:18} {times}: {chosen(results[0][0])}", flush=True)
            if len(results) > 1 and chosen(results[0][0]) != chosen(results[1][0]):
                print(f"{'':18} the other: {chosen(results[1][0])}", flush=True)
                worse += is_worse(results[0][0], results[1][0])
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
