"""Runs Plimsoll and llm.c's train_gpt2.c in turn on W3's work (GPT-2 124M, 4 x 64 tokens, fp32) and writes bench/results.

    python rounds.py LLMC [--rounds 3] [--steps 3] [--binary build/plimsoll]

Called by bench/run-llmc, which builds. Weights and tokens of both are random; llm.c's step has no clipping.
"""
import argparse
import array
import datetime
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from processes import Log, Side, SideFailed, busy_seconds  # noqa: E402
from report import against, table  # noqa: E402

RUN = "bench/step/w3/run.yaml"
GOAL = 4.0
BATCH, TOKENS = 4, 64  # as train_gpt2.c has them
FLAGS = ["-Ofast", "-march=native", "-fno-finite-math-only", "-fopenmp", "-DOMP"]
STEP = re.compile(r"^step (\d+): .*\(took ([0-9.]+) ms\)")

# train_gpt2.c's files: 256 integers, then the data. GPT-2 124M, the vocabulary padded to a multiple of 128.
HEADER = 256
MODEL_MAGIC, MODEL_VERSION = 20240326, 3
TOKENS_MAGIC, TOKENS_VERSION = 20240520, 1
POSITIONS, VOCABULARY, PADDED, LAYERS, HEADS, WIDTH = 1024, 50257, 50304, 12, 12, 768


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def write_file(path, header, *parts):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        array.array("i", header + [0] * (HEADER - len(header))).tofile(file)
        for part in parts:
            part.tofile(file)


def weights():
    """The parameters in the file's order: small random numbers, ones where a norm scales."""
    draw = random.Random(42)
    block = array.array("f", (draw.gauss(0, 0.02) for _ in range(1 << 16)))

    def drawn(count):
        whole, rest = divmod(count, len(block))
        return block * whole + block[:rest]

    def same(value, count):
        return array.array("f", [value]) * count
    matrix = LAYERS * WIDTH * WIDTH
    norm = [same(1.0, LAYERS * WIDTH), same(0.0, LAYERS * WIDTH)]
    return [drawn(PADDED * WIDTH), drawn(POSITIONS * WIDTH), *norm, drawn(3 * matrix), same(0.0, 3 * LAYERS * WIDTH),
            drawn(matrix), same(0.0, LAYERS * WIDTH), *norm, drawn(4 * matrix), same(0.0, 4 * LAYERS * WIDTH),
            drawn(4 * matrix), same(0.0, LAYERS * WIDTH), same(1.0, WIDTH), same(0.0, WIDTH)]


def make_files(folder):
    write_file(folder / "gpt2_124M.bin",
               [MODEL_MAGIC, MODEL_VERSION, POSITIONS, VOCABULARY, LAYERS, HEADS, WIDTH, PADDED], *weights())
    draw = random.Random(7)
    ids = array.array("H", (draw.randrange(VOCABULARY) for _ in range(64 * BATCH * TOKENS + 1)))
    for split in ("train", "val"):
        write_file(folder / f"dev/data/tinyshakespeare/tiny_shakespeare_{split}.bin",
                   [TOKENS_MAGIC, TOKENS_VERSION, len(ids)], ids)


def build(source, folder, log):
    command = ["gcc", *FLAGS, str(source / "train_gpt2.c"), "-lm", "-o", str(folder / "train_gpt2")]
    log.write("$ " + " ".join(["gcc", *FLAGS, "train_gpt2.c", "-lm", "-o", "train_gpt2"]) + "\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    log.write(done.stderr.replace(str(source), "llm.c"))
    if done.returncode != 0:
        raise SideFailed("llm.c was not built")


def llmc_round(folder, threads, steps, log):
    """Seconds of its steps 1 to `steps`, and everyone else's load meanwhile. Step 0, which touches its memory, is left out."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    log.write(f"$ OMP_NUM_THREADS={threads} ./train_gpt2\n")
    seconds = []
    with subprocess.Popen(["stdbuf", "-oL", "./train_gpt2"], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=log.stderr) as process:
        busy = own = None
        try:
            for line in process.stdout:
                log.write(f"llm.c: {line}")
                if not (step := STEP.match(line)):
                    continue
                if int(step[1]) == 0:
                    busy, own = busy_seconds(), cpu_seconds(process.pid)
                    continue
                seconds.append(float(step[2]) / 1e3)
                if len(seconds) == steps:
                    foreign = busy_seconds() - busy - (cpu_seconds(process.pid) - own)
                    return seconds, max(0.0, foreign / sum(seconds))
        finally:
            process.kill()
    raise SideFailed(f"llm.c ended before its step {steps}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def take_turns(args, folder, log):
    """Rounds of (llm.c's seconds a step, ours, their load, ours): llm.c first, then Plimsoll, which waits meanwhile."""
    command = [args.binary, "bench", "step", RUN, f"runtime.threads={args.threads}", "--json", "--interactive"]
    side = Side("plimsoll", command, log)
    try:
        side.go(2)
        rounds = []
        for number in range(args.rounds):
            theirs, their_load = llmc_round(folder, args.threads, args.steps, log)
            event = side.go(4 * args.steps)
            rounds.append((statistics.median(theirs), event["seconds"] / event["steps"], their_load, event["foreign_cores"]))
            progress(f"round {number + 1}/{args.rounds}: llm.c {rounds[-1][0]:.2f} s, Plimsoll {rounds[-1][1]:.3f} s a step")
        side.finish()
        return rounds
    finally:
        side.stop()


def page(run):
    cpu, rounds = run["cpu"], run["rounds"]
    ratio = statistics.median(theirs / ours for theirs, ours, _, _ in rounds)
    each = [["round", f"{theirs:.2f}", f"{BATCH * TOKENS / theirs:.0f}", f"{ours:.3f}", f"{BATCH * TOKENS / ours:.0f}",
             f"{theirs / ours:.2f}", f"{a:.2f}, {b:.2f}"] for theirs, ours, a, b in rounds]
    return f"""{machine.title(f"GPT-2 124M against llm.c on the CPU, {run['date']}", run["commit"] + run["llmc"])}

Written by `{run["command"]}` at commit {run["commit"]}, llm.c at {run["llmc"]}; every line the programs printed is in [{run["log_name"]}]({run["log_name"]}).

- Processor: {machine.named(cpu)}, {run["memory_bytes"] / (1 << 30):.1f} GiB; {" ".join(cpu["flags"])}
- {BATCH}×{TOKENS} tokens, fp32, random weights and tokens, {run["threads"]} threads; load average at the start {run["load"]}
- llm.c: `train_gpt2.c` built with `gcc {" ".join(FLAGS)}`, {run["gcc"]}; its step does not clip, and its first step is left out
- Plimsoll: `plimsoll bench step {RUN}`, clipping at norm 1. The programs take turns, and whoever waits computes nothing

## Goals

{table(["work", "figure", "measured", "goal", ""], [["W3", "tokens/s against llm.c", *against(ratio, GOAL)]])}

## Rounds

Seconds a step (llm.c: median of {run["steps"]}, Plimsoll: mean of {4 * run["steps"]}) and tokens a second; `foreign` is the load of all other processes in cores, of either turn.

{table(["", "llm.c, s", "tokens/s", "plimsoll, s", "tokens/s", "ratio", "foreign"], each, left=1)}
"""


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run-llmc", description=__doc__.splitlines()[0])
    parser.add_argument("llmc", type=pathlib.Path, help="a checkout of llm.c")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="llm.c's steps a round; Plimsoll does four times as many")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--results", default="bench/results", help="the folder to write to")
    args = parser.parse_args()
    args.llmc = args.llmc.resolve()
    if not (args.llmc / "train_gpt2.c").is_file():
        parser.error(f"{args.llmc} has no train_gpt2.c: name a checkout of llm.c")
    if machine.commit(args.llmc) == "unknown":
        parser.error(f"{args.llmc} is no checkout: its commit has to stand on the page")
    if args.rounds < 1 or not 1 <= args.steps <= 40:
        parser.error("--rounds must be 1 or more, --steps 1 to 40")
    return args


def main():
    args = parse_arguments()
    os.chdir(machine.ROOT)
    date, cpu, commit, llmc = datetime.date.today().isoformat(), machine.cpu(), machine.commit(), machine.commit(args.llmc)
    results = pathlib.Path(args.results)
    results.mkdir(parents=True, exist_ok=True)
    name = f"{date}-llm.c-{machine.slug(cpu)}"
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    log = Log(results / f"{name}.log")
    try:
        with tempfile.TemporaryDirectory(prefix="plimsoll-llmc-") as scratch:
            folder = pathlib.Path(scratch)
            progress("building llm.c, drawing weights")
            build(args.llmc, folder, log)
            make_files(folder)
            rounds = take_turns(args, folder, log)
    except SideFailed as failure:
        raise SystemExit(f"bench: {failure}; see {log.path}")
    finally:
        log.close()
    arguments = [word for word in sys.argv[1:] if pathlib.Path(word).resolve() != args.llmc]
    text = page(dict(date=date, commit=commit, llmc=llmc, cpu=cpu, memory_bytes=machine.memory_bytes("MemTotal"), load=load,
                     threads=args.threads, steps=args.steps, command=" ".join(["bench/run-llmc LLMC", *arguments]),
                     gcc=f"gcc {gcc}", log_name=f"{name}.log", rounds=rounds))
    (results / f"{name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
