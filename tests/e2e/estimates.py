#!/usr/bin/env python3
"""Estimated against measured step times, after calibrate, over models, settings and precisions.

    tests/e2e/estimates.py BINARY [--only WORD] [--steps N] [--rounds N] [--profile FILE]

Calibrates into a temporary cache, then takes each pair's plan and its median step of a short run. Prints a line a
pair, then the median and the worst error. For a quiet machine: what else runs is an error of the estimate here, so
each pair may be measured in several rounds, of which the quickest counts.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

MODELS = [  # layers, hidden, intermediate, heads, vocabulary
    (2, 128, 384, 4, 1024), (4, 256, 768, 4, 4096), (6, 288, 768, 6, 4096), (4, 512, 1536, 8, 8192),
    (8, 384, 1024, 6, 16384)]
SETTINGS = [(1, 128), (4, 256), (8, 512)]  # sequences, tokens
PRECISIONS = ["fp32", "bf16", "fp16"]
RUN = """model:
  config: {{model_type: llama, vocab_size: {v}, hidden_size: {h}, intermediate_size: {f}, num_hidden_layers: {l},
    num_attention_heads: {a}, num_key_value_heads: {a}, max_position_embeddings: 1024, rms_norm_eps: 1.0e-5}}
  init: random
data: {{train: tokens.npy, sequence_length: {t}}}
training: {{global_batch_size: {b}, max_steps: 1000, precision: {p}}}
"""


def events(binary, env, *words):
    out = subprocess.run([binary, *words, "--json"], env=env, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def median_step(binary, env, run, steps):
    process = subprocess.Popen([binary, "bench", "step", run, "--json", "--interactive"], env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seconds = []
    for _ in range(steps):
        process.stdin.write("go 1\n")
        process.stdin.flush()
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "round":
                seconds.append(event["seconds"])
                break
    process.stdin.close()
    process.stdout.read()
    process.wait()
    return statistics.median(seconds[1:])


def pairs(folder, only, profile):
    """Run files by name."""
    runs = {}
    for l, h, f, a, v in MODELS:
        for b, t in SETTINGS:
            for p in PRECISIONS:
                name = f"{l}x{h} vocabulary {v}, {b} x {t}, {p}"
                if only not in name:
                    continue
                runs[name] = os.path.join(folder, f"run-{len(runs)}.yaml")
                with open(runs[name], "w") as file:
                    file.write(RUN.format(l=l, h=h, f=f, a=a, v=v, b=b, t=t, p=p))
                    file.write(f"runtime: {{profile: {profile}}}\n")
    return runs


def compare(binary, env, name, run, measured):
    plan = events(binary, env, "plan", run)[0]
    assert plan["choices"]["rates"] == "calibrated"
    estimated = plan["step"]["seconds_estimated"]
    print(f"{name:44} estimated {estimated:9.4f} s  measured {measured:9.4f} s  "
          f"{100 * (estimated / measured - 1):+6.1f} %", flush=True)
    return abs(estimated / measured - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--profile", help="instead of calibrating")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, XDG_CACHE_HOME=folder)
        profile = os.path.abspath(arguments.profile) if arguments.profile else os.path.join(folder, "profile.json")
        if not arguments.profile:
            events(binary, env, "calibrate", "--output", profile)
        runs = pairs(folder, arguments.only, profile)
        measured = {name: [] for name in runs}
        for _ in range(arguments.rounds):
            for name, run in runs.items():
                measured[name].append(median_step(binary, env, run, arguments.steps))
        errors = [compare(binary, env, name, run, min(measured[name])) for name, run in runs.items()]
    print(f"{len(errors)} pairs: median error {100 * statistics.median(errors):.1f} %, "
          f"worst {100 * max(errors):.1f} %")


if __name__ == "__main__":
    main()
