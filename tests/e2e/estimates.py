#!/usr/bin/env python3
"""Estimated against measured step times, after calibrate, over models, settings and precisions.

    tests/e2e/estimates.py BINARY [--only WORD]... [--steps N] [--rounds N] [--profile FILE]

Calibrates into a temporary cache, then takes each pair's plan and the median over the steps of its short runs. Prints a
line a pair as soon as it is measured, and in the end the median and the worst error. What else runs is an error of the
estimate here, so each pair may be run in several rounds, each behind a calibration of its own, which meet different
moments: a pair's line then comes in each round, with the medians over all estimates and steps so far, and the last one
counts. --only takes the pairs whose name has that word
("bf16", "8x384", "4 x 256"), several times those that have all of them.
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


def measured_steps(binary, env, run, steps):
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
    return seconds[1:]


def pairs(folder, only, profile):
    """Run files by name."""
    runs = {}
    for l, h, f, a, v in MODELS:
        for b, t in SETTINGS:
            for p in PRECISIONS:
                name = f"{l}x{h} vocabulary {v}, {b} x {t}, {p}"
                if not all(word in name for word in only):
                    continue
                runs[name] = os.path.join(folder, f"run-{len(runs)}.yaml")
                with open(runs[name], "w") as file:
                    file.write(RUN.format(l=l, h=h, f=f, a=a, v=v, b=b, t=t, p=p))
                    file.write(f"runtime: {{profile: {profile}}}\n")
    return runs


def estimate(binary, env, run):
    plan = events(binary, env, "plan", run)[0]
    assert plan["choices"]["rates"] == "calibrated"
    return plan["step"]["seconds_estimated"]


def compare(name, estimated, measured):
    print(f"{name:44} estimated {estimated:9.4f} s  measured {measured:9.4f} s  "
          f"{100 * (estimated / measured - 1):+6.1f} %", flush=True)
    return abs(estimated / measured - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--profile", help="instead of calibrating")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, XDG_CACHE_HOME=folder)
        profile = os.path.abspath(arguments.profile) if arguments.profile else os.path.join(folder, "profile.json")
        runs = pairs(folder, arguments.only, profile)
        if not runs:
            parser.error(f"no pair's name has {' and '.join(arguments.only)}")
        estimated, measured, errors = {}, {}, {}
        for number in range(1, arguments.rounds + 1):
            if not arguments.profile:
                events(binary, env, "calibrate", "--output", profile)
            if arguments.rounds > 1:
                print(f"Round {number} of {arguments.rounds}, all so far:", flush=True)
            for name, run in runs.items():
                estimated.setdefault(name, []).append(estimate(binary, env, run))
                measured.setdefault(name, []).extend(measured_steps(binary, env, run, arguments.steps))
                errors[name] = compare(name, statistics.median(estimated[name]), statistics.median(measured[name]))
    print(f"{len(errors)} pairs: median error {100 * statistics.median(errors.values()):.1f} %, "
          f"worst {100 * max(errors.values()):.1f} %")


if __name__ == "__main__":
    main()
