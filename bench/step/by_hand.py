"""The best that a PyTorch user gets by hand at a peak of memory, beside what Plimsoll chooses within the same, in turn.

    bench/run-by-hand [--only W1,W2,W2b,W4] [--precision fp32|bf16] [--rounds 3] [--threads 2]

By hand: eager or compiled, with gradient checkpointing or without, each micro-batch that divides the batch (compiled: the whole
batch alone). Each runs once; what another beats in both memory and speed is left out. The others then take turns with a run of
Plimsoll whose memory.budget is their peak (VmHWM) and which is told nothing else. The last lines are Plimsoll alone, within
less than the least of PyTorch's: half of that, and the least budget that its plan names.
"""
import argparse
import statistics
import sys

import works as catalogue
from memory import least_budget, run_file
from processes import Side, SideFailed
from report import against, table
from workplace import Workplace, add_arguments, opening, progress

GOAL = {"strict": 2.0, "plain": 1.4}
STEPS = 2


def settings_by_hand(batch, modes):
    """(mode, checkpointing, parts of the batch)."""
    parts = [n for n in range(1, batch + 1) if batch % n == 0]
    for mode in modes:
        for checkpointing in (False, True):
            for accumulate in parts if mode == "eager" else parts[:1]:
                yield mode, checkpointing, accumulate


def named(work, setting):
    mode, checkpointing, accumulate = setting
    return f"{mode}, {work['batch'] // accumulate} x {accumulate}" + (", checkpointing" if checkpointing else "")


def their_side(args, work, setting, log):
    mode, checkpointing, accumulate = setting
    command = [sys.executable, str(catalogue.HERE / "peer.py"), "--config", str(catalogue.HERE / work["folder"] / "config.json"),
               "--batch", str(work["batch"]), "--tokens", str(work["tokens"]), "--threads", str(args.threads), "--mode", mode,
               "--precision", args.precision, "--accumulate", str(accumulate), *catalogue.peer_options(work)]
    return Side(named(work, setting), command + (["--checkpointing"] if checkpointing else []), log)


def our_side(args, work, budget, log):
    return Side("plimsoll", [args.binary, "bench", "step", run_file(work), f"training.precision={args.precision}",
                             "training.micro_batch_size=auto", f"memory.budget={budget}", f"runtime.threads={args.threads}", "--json",
                             "--interactive"], log)


def rate(work, event):
    return work["batch"] * work["tokens"] * event["steps"] / event["seconds"]


def alone(work, side):
    """Tokens a second and the peak of a side that runs by itself; the side has ended then."""
    try:
        side.go(1)
        measured = max(rate(work, side.go(STEPS)) for _ in range(2))
        peak = side.peak_bytes()
        return measured, peak, side.finish()
    finally:
        side.stop()


def undominated(measured):
    """Rows (setting, rate, peak) that none beats in both, the least memory first."""
    return sorted((row for row in measured if not any(other[1] > row[1] and other[2] <= row[2] for other in measured)),
                  key=lambda row: row[2])


def in_turns(args, work, setting, budget, log):
    """Ratios of tokens a second by round, ours to theirs, with both medians and peaks."""
    sides = [their_side(args, work, setting, log), our_side(args, work, budget, log)]
    rates = [[], []]
    try:
        for side in sides:
            side.go(1)
        for number in range(args.rounds):
            for at in ((0, 1), (1, 0))[number % 2]:
                rates[at].append(rate(work, sides[at].go(STEPS)))
        peaks = [side.peak_bytes() for side in sides]
        sides[1].finish()
    finally:
        for side in sides:
            side.stop()
    return {"ratio": statistics.median(b / a for a, b in zip(*rates)), "rates": [statistics.median(r) for r in rates], "peaks": peaks}


def measure(args, name, log):
    work = catalogue.WORKS[name]
    tried = []
    for setting in settings_by_hand(work["batch"], args.modes.split(",")):
        progress(f"{name}: {named(work, setting)}")
        try:
            measured, peak, _ = alone(work, their_side(args, work, setting, log))
            tried.append((setting, measured, peak))
        except SideFailed as failure:
            progress(f"{name}: {failure}")
    rows = []
    for setting, _, peak in undominated(tried):
        progress(f"{name}: Plimsoll within {peak / 2**20:.0f} MiB beside {named(work, setting)}")
        rows.append((named(work, setting), peak, in_turns(args, work, setting, peak, log)))
    least_of_theirs = min(peak for _, _, peak in tried)
    below = []
    least = least_budget(args.binary, work, [f"training.precision={args.precision}", "training.micro_batch_size=auto"], args.threads)
    for budget in [least_of_theirs // 2, least]:
        if budget >= least:
            progress(f"{name}: Plimsoll within {budget / 2**20:.0f} MiB")
            measured, peak, summary = alone(work, our_side(args, work, budget, log))
            below.append((budget, measured, peak, summary.get("planned_peak_bytes", 0)))
    return {"tried": [(named(work, s), r, p) for s, r, p in tried], "rows": rows, "below": below}


def section(name, result, goal):
    mib = lambda size: f"{size / 2**20:,.0f}"
    text = f"\n## {name}\n\nBy hand, each alone:\n\n"
    text += table(["PyTorch", "tokens/s", "peak, MiB"], [[n, f"{r:.0f}", mib(p)] for n, r, p in result["tried"]], left=1)
    text += "\n\nIn turn with what Plimsoll chooses within that peak:\n\n"
    text += table(["PyTorch, beaten by no other", "budget, MiB", "tokens/s", "Plimsoll", "its peak, MiB", "ratio", "goal", ""],
                  [[n, mib(p), f"{t['rates'][0]:.0f}", f"{t['rates'][1]:.0f}", mib(t["peaks"][1]), f"{t['ratio']:.2f}", f"{goal}",
                    "met" if t["ratio"] >= goal and t["peaks"][1] <= p else "missed"] for n, p, t in result["rows"]], left=1)
    text += "\n\nWithin less than PyTorch runs in:\n\n"
    return text + table(["budget, MiB", "tokens/s", "peak, MiB", "planned"],
                        [[mib(b), f"{r:.0f}", mib(p), mib(planned)] for b, r, p, planned in result["below"]]) + "\n"


def head(about, args, measured):
    """What the page is of, and the table of goals that README quotes."""
    goal = GOAL[args.goal]
    rows = [[name, f"tokens/s against {setting}", f"{peak / 2**20:,.0f} MiB", *against(turns["ratio"], goal)]
            for name, result in measured.items() for setting, peak, turns in result["rows"]]
    title = f"What a PyTorch user gets by hand, and Plimsoll within the same memory, {args.precision}"
    conditions = f"{args.precision}, {args.threads} threads"
    return f"""{opening(about, title, conditions)}

Peaks are the kernel's VmHWM, ratios the median of the rounds' own. A calibrated profile is used where the machine has one.

## Goals

{table(["work", "PyTorch by hand", "memory", "measured", "goal", ""], rows, left=3)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-by-hand", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, 0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--goal", choices=list(GOAL), default="plain", help="strict: where PyTorch's GEMM is half of the best")
    parser.add_argument("--only", default="W1,W2,W2b,W4")
    args = parser.parse_args()
    with Workplace(args, f"by-hand-{args.precision}", "bench/run-by-hand") as place:
        about = place.about
        measured = {}
        for name in args.only.split(","):
            measured[name] = measure(args, name, place.log)
            place.publish(head(about, args, measured) + "".join(section(n, m, GOAL[args.goal]) for n, m in measured.items()))


if __name__ == "__main__":
    main()
