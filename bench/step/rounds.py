"""Runs Plimsoll and PyTorch (eager, compiled) in turn on the same work and writes bench/results.

    python rounds.py [--only W1,W2] [--rounds 7] [--peers eager,compiled] [--precision bf16] [--binary build/plimsoll]

Called by bench/run, which makes the Python environment and builds.
"""
import argparse
import datetime
import os
import pathlib
import statistics
import sys
import time

import machine
import report
import works as catalogue
from processes import Log, Side, SideFailed, floor_bytes

ROOT = machine.ROOT
# A round that is further than this off its side's median is measured again: somebody else used the machine.
UNSTEADY = 0.10


def command_of(side, work, args):
    folder = catalogue.HERE / work["folder"]
    if side == "plimsoll":
        return [args.binary, "bench", "step", str(folder.relative_to(ROOT) / work.get("run", "run.yaml")), f"runtime.threads={args.threads}",
                f"training.precision={args.precision}", "--json", "--interactive"]
    return [sys.executable, str(catalogue.HERE / "peer.py"), "--config", str(folder / "config.json"), "--batch",
            str(work["batch"]), "--tokens", str(work["tokens"]), "--threads", str(args.threads), "--mode", side,
            "--precision", args.precision, *catalogue.peer_options(work)]


def floor_command(side, work, args):
    """What loads a side's code and nothing else."""
    return [args.binary, "--version"] if side == "plimsoll" else command_of(side, work, args) + ["--imports-only"]


def start(side, work, args, log):
    """A started side that has done its first step, and the seconds from its start to there."""
    running = Side(side, command_of(side, work, args), log)
    try:
        running.go(1)
    except SideFailed:
        running.stop()
        raise
    return running, time.perf_counter() - running.spawned


def rotated(items, by):
    by %= len(items)
    return items[by:] + items[:by]


def one_round(name, work, running, number):
    """One round: every side in turn, the order rotated by `number`. Returns each side's event."""
    events = {}
    for side in rotated(list(running), number):
        events[side] = running[side].go(work["steps"])
        progress(f"{name} round {number + 1}: {side} {report.rate(events[side]):.0f} tokens/s")
    return events


def steady_rounds(name, work, running, args):
    """args.rounds rounds, by side, and how many were taken again: while a round has a side that is more than UNSTEADY off its
    median, the round that is furthest off is measured anew, at most args.rounds times. All are in the log."""
    rounds = [one_round(name, work, running, number) for number in range(args.rounds)]
    again = 0
    while again < args.rounds:
        middle = {side: statistics.median(report.rate(events[side]) for events in rounds) for side in running}
        off = [max(abs(report.rate(events[side]) / middle[side] - 1) for side in running) for events in rounds]
        if max(off) <= UNSTEADY:
            break
        rounds[off.index(max(off))] = one_round(name, work, running, args.rounds + again)
        again += 1
    return {side: [events[side] for events in rounds] for side in running}, again


def written_bytes(work, args, log):
    """The peak of a run whose memory is not touched in advance: what of the plan the steps really write, and all that they use
    beside it. The plan has no part in this figure."""
    side = Side("plimsoll, untouched", command_of("plimsoll", work, args), log, {"PLIMSOLL_UNTOUCHED": "1"})
    try:
        side.go(3)
        peak = side.peak_bytes()
        side.finish()
    finally:
        side.stop()
    return peak


def take_turns(name, work, sides, args, log):
    """One work: starts every side, then rounds in rotating order. Returns rounds, peaks, starts, planned."""
    running, first_step = {}, {}
    try:
        if "plimsoll" in sides:
            once, seconds = start("plimsoll", work, args, log)
            once.finish()
            first_step["plimsoll, first"] = seconds
        for side in sides:
            progress(f"{name}: starting {side}")
            running[side], first_step[side] = start(side, work, args, log)
        for side in sides:
            running[side].go(1)
        rounds, again = steady_rounds(name, work, running, args)
        peaks = {side: running[side].peak_bytes() for side in sides}
        summaries = {side: running[side].finish() for side in sides}
        versions = {key: running[side].last("ready").get(key) for side in sides for key in ("torch", "transformers")
                    if running[side].last("ready").get(key)}
    finally:
        for side in running.values():
            side.stop()
    step = {side: statistics.median(e["seconds"] / e["steps"] for e in rounds[side]) for side in sides}
    starts = {side: first_step[side] - step[side] for side in sides}
    if "plimsoll" in sides:
        starts["plimsoll"] = [first_step["plimsoll, first"] - step["plimsoll"], starts["plimsoll"]]
    planned = summaries.get("plimsoll", {}).get("planned_peak_bytes")
    floors = {side: floor_bytes(floor_command(side, work, args), log) for side in sides}
    written = written_bytes(work, args, log) if "plimsoll" in sides else None
    return dict(rounds=rounds, again=again, peaks=peaks, floors=floors, written=written, starts=starts, planned=planned, versions=versions)


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def free_name(folder, stem):
    for number in range(1, 1000):
        name = stem if number == 1 else f"{stem}-{number}"
        if not (folder / f"{name}.md").exists():
            return name
    raise SystemExit(f"bench: too many results named {stem}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="W1,W2,W2b", help="works, with commas: W1, W2, W2b, W3 (GPT-2), W4 (LoRA), W4Q (QLoRA: with --precision bf16)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", default="eager,compiled", help="eager, compiled, or both")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: PyTorch's autocast")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--kernels", default="build/bench/bench_kernels", help="the GEMM yardsticks' program")
    parser.add_argument("--results", default="bench/results", help="the folder to write to")
    parser.add_argument("--without-plimsoll", action="store_true", help="the peers alone")
    args = parser.parse_args()
    names = args.only.split(",")
    unknown = [name for name in names if name not in catalogue.WORKS]
    if unknown or args.rounds < 1:
        parser.error(f"no such work: {', '.join(unknown)}" if unknown else "--rounds must be 1 or more")
    return args, names


def main():
    args, names = parse_arguments()
    os.chdir(ROOT)
    folder = pathlib.Path(args.results)
    folder.mkdir(parents=True, exist_ok=True)
    date, cpu, commit = datetime.date.today().isoformat(), machine.cpu(), machine.commit()
    name = free_name(folder, f"{date}-{'' if args.precision == 'fp32' else args.precision + '-'}{machine.slug(cpu)}")
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    log = Log(folder / f"{name}.log")
    sides = ([] if args.without_plimsoll else ["plimsoll"]) + [peer for peer in args.peers.split(",") if peer]
    results = {}
    try:
        progress("matrix products")
        rates = machine.torch_rates(sys.executable, args.threads, args.precision, log)
        if not args.without_plimsoll and args.precision == "fp32":
            rates += machine.plimsoll_rates(args.binary, args.threads, log)
        if os.path.exists(args.kernels) and args.precision == "fp32":
            rates += machine.kernel_rates(args.kernels, args.threads, log)
        for work_name in names:
            work = catalogue.WORKS[work_name]
            results[work_name] = take_turns(work_name, work, sides, args, log)
    except SideFailed as failure:
        log.close()
        raise SystemExit(f"bench: {failure}; see {log.path}")
    log.close()
    versions = {key: value for result in results.values() for key, value in result["versions"].items()}
    text = report.page(dict(
        date=date, commit=commit, cpu=cpu, memory_bytes=machine.memory_bytes("MemTotal"), versions=versions,
        load=load, threads=args.threads, precision=args.precision, command=" ".join(["bench/run", *sys.argv[1:]]), log_name=f"{name}.log",
        rates=rates, results=results, works=catalogue.WORKS,
        flops={work_name: catalogue.step_flops(catalogue.WORKS[work_name]) for work_name in names}))
    page = folder / f"{name}.md"
    page.write_text(text)
    print(text)
    progress(f"written to {page}")


if __name__ == "__main__":
    main()
