"""Two ranks with one thread each beside one rank with two threads and PyTorch over gloo, the same effective batch, in turn.

    bench/run-ranks [--only W2,W2b] [--sides one,ddp,zero1,zero2,mpi,torch-ddp,torch-fsdp2] [--rounds 3] [--steps 5]

Each run is a process of its own; the first step of each is left out. A ratio is the median of the rounds' own.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
import works as catalogue  # noqa: E402
from report import MIB, against, table  # noqa: E402
from workplace import Workplace, add_arguments, opening, progress  # noqa: E402

RANKS = 2
# Goals for tokens/s: what is measured, beside what, by work.
GOALS = [("ddp", "one", {"W2": 0.94, "W2b": 0.98}), ("mpi", "one", {"W2": 0.92, "W2b": 0.97}), ("zero1", "ddp", {"W2": 0.98, "W2b": 0.98}),
         ("zero2", "ddp", {}), ("zero3", "ddp", {"W2": 0.926, "W2b": 0.926}), ("ddp", "torch-ddp", {"W2": 1.8}), ("zero3", "torch-fsdp2", {"W2": 1.8})]
MPIRUN = ["mpirun", "--bind-to", "none", "-n", str(RANKS)]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}


def write_text(path):
    words = ["budget", "gradient", "layer", "memory", "plan", "rank", "step", "weight"]
    chosen = random.Random(0)
    path.write_text("\n\n".join(" ".join(chosen.choices(words, k=200)) for _ in range(500)))


def run_file(args, work):
    """The run of a work whose ranks take one example each or, W2b's batch, two."""
    batch = max(RANKS, work["batch"])
    path = args.work / f"{work['folder']}.json"
    path.write_text(json.dumps({
        "model": {"path": str(catalogue.HERE / work["folder"]), "init": "random"},
        "data": {"train": str(args.work / "text.txt"), "sequence_length": work["tokens"], "tokenizer": "bytes"},
        "training": {"global_batch_size": batch, "micro_batch_size": batch // RANKS, "max_steps": args.steps, "precision": "fp32",
                     "learning_rate": 3e-4, "lr_scheduler": "constant", "max_grad_norm": 1.0, "logging_steps": 1},
        "output": {"dir": str(args.work / "out")}}))
    return path, batch


def command_of(args, work, side):
    run, batch = run_file(args, work)
    train = [args.binary, "train", run, "--json", "--resume", "never"]
    if side.startswith("torch-"):
        return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", RANKS, "--master-addr", "127.0.0.1", "--master-port", 29511,
                HERE / "peer.py", "--config", catalogue.HERE / work["folder"] / "config.json", "--batch", batch // RANKS,
                "--tokens", work["tokens"], "--mode", side.removeprefix("torch-"), "--steps", args.steps]
    if side == "one":
        return [*train, f"runtime.threads={RANKS}"]
    if side == "mpi":
        return [*MPIRUN, *train, "runtime.threads=1", "distributed.mode=ddp", "distributed.transport=mpi"]
    return [args.binary, "launch", "--ranks", RANKS, "--", *train[1:], "runtime.threads=1", f"distributed.mode={side}"]


def run(args, work, side, log):
    """Seconds of a step, and the largest peak of a rank beside what is planned for it (0 of PyTorch's)."""
    command = [str(word) for word in command_of(args, work, side)]
    log.write(f"$ {machine.shown(command).replace(str(args.work), 'WORK')}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, stdin=subprocess.DEVNULL, text=True,
                          env={**os.environ, **AS_ROOT, "OMP_NUM_THREADS": "1"})
    log.write(done.stdout.replace(str(args.work), "WORK"))
    if done.returncode != 0:
        raise SystemExit(f"bench: exit code {done.returncode}; see {log.path}")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    summaries = [event for event in events if event["event"] == "summary"]
    return {"seconds": statistics.median(event["step_seconds"] for event in events[1:] if event["event"] == "step" and event["step"] > 1),
            "peak": max(event["measured_peak_bytes"] for event in summaries),
            "planned": max(event.get("planned_peak_bytes", 0) for event in summaries)}


def measure(args, name, log):
    """{side: a result of each round}."""
    results = {side: [] for side in args.sides}
    for number in range(args.rounds):
        for side in args.sides if number % 2 == 0 else reversed(args.sides):
            progress(f"{name}, round {number + 1} of {args.rounds}: {side}")
            results[side].append(run(args, catalogue.WORKS[name], side, log))
    return results


def goal_rows(measured):
    for name, results in measured.items():
        for side, other, goals in GOALS:
            if side in results and other in results:
                ratio = statistics.median(b["seconds"] / a["seconds"] for a, b in zip(results[side], results[other]))
                yield [name, f"tokens/s of {side} against {other}", *against(ratio, goals.get(name))]
        for side, rounds in results.items():
            if rounds[0]["planned"]:
                share = max(each["peak"] / each["planned"] for each in rounds)
                yield [name, f"{side}: measured peak over planned", f"{share:.4f}", "0.99 to 1", "met" if 0.99 <= share <= 1 else "missed"]
        if "ddp" in results and "torch-ddp" in results:
            yield [name, "peak memory of ddp against torch-ddp",
                   *against(results["ddp"][0]["peak"] / results["torch-ddp"][0]["peak"], 0.5, at_most=True)]


def round_rows(measured):
    for name, results in measured.items():
        for side, rounds in results.items():
            seconds = [each["seconds"] for each in rounds]
            yield [name, side, f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}–{max(seconds):.3f}",
                   f"{max(each['peak'] for each in rounds) / MIB:,.0f}", f"{rounds[0]['planned'] / MIB:,.0f}" if rounds[0]["planned"] else "–"]


def page(about, args, measured):
    conditions = f"{RANKS} ranks with a thread each, `one` is a rank with {RANKS} threads; fp32"
    return f"""{opening(about, "Two ranks on one machine", conditions)}
- PyTorch over gloo with a thread a rank; peaks are of the rank with the largest, as the kernel has them

## Goals

{table(["work", "figure", "measured", "goal", ""], list(goal_rows(measured)))}

## Rounds

{table(["work", "side", "s a step", "between", "peak, MiB", "planned, MiB"], list(round_rows(measured)))}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-ranks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="W2,W2b")
    parser.add_argument("--sides", default="one,ddp,zero1,zero2,mpi,torch-ddp,torch-fsdp2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    add_arguments(parser, 5)
    args = parser.parse_args()
    args.sides = args.sides.split(",")
    with Workplace(args, "ranks", "bench/run-ranks") as place:
        write_text(args.work / "text.txt")
        place.publish(page(place.about, args, {name: measure(args, name, place.log) for name in args.only.split(",")}))


if __name__ == "__main__":
    main()
