"""Turns measured rounds into the page bench/results/<date>-<machine>.md. Every figure on it comes from the run."""
import statistics

import machine

MIB = 1 << 20


def table(header, rows, left=2):
    """A Markdown table whose columns line up; the first `left` columns are words, the others figures."""
    cells = [header] + rows
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row):
        padded = [cell.ljust(width) if column < left else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(row, widths))]
        return "| " + " | ".join(padded) + " |"
    rule = "| " + " | ".join("-" * width if column < left else "-" * (width - 1) + ":"
                             for column, width in enumerate(widths)) + " |"
    return "\n".join([line(header), rule] + [line(row) for row in rows])


def rate(event):
    return event["tokens"] / event["seconds"]


def spread(values, digits=0):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f}", f"{low:.{digits}f}–{high:.{digits}f}"


def against(value, goal, at_most=False):
    """A figure beside its goal, with a word when it falls short."""
    if goal is None:
        return f"{value:.2f}", "–", ""
    met = value <= goal if at_most else value >= goal
    return f"{value:.2f}", ("≤ " if at_most else "≥ ") + f"{goal:.2f}", "met" if met else "missed"


def speed_rows(results):
    for name, result in results.items():
        for side, rounds in result["rounds"].items():
            middle, between = spread([rate(event) for event in rounds])
            foreign = statistics.median(event["foreign_cores"] for event in rounds)
            yield [name, side, middle, between, str(len(rounds)), str(result["again"]), f"{foreign:.2f}"]


def paired_ratio(rounds, side):
    """Median over the rounds of ours / theirs, each pair measured next to each other."""
    return statistics.median(rate(ours) / rate(theirs) for ours, theirs in zip(rounds["plimsoll"], rounds[side]))


def ratio_rows(results, works, kind):
    for name, result in results.items():
        goals = works[name][kind]
        for side in result["rounds"]:
            if side != "plimsoll" and "plimsoll" in result["rounds"]:
                ratio = paired_ratio(result["rounds"], side)
                yield [name, f"tokens/s against {side}", *against(ratio, goals.get(side))]


def gemm_share_rows(results, works, best, flops):
    for name, result in results.items():
        rounds = result["rounds"].get("plimsoll")
        if rounds:
            gflops = statistics.median(event["steps"] / event["seconds"] for event in rounds) * flops[name] / 1e9
            yield [name, f"share of {best:.0f} GFLOP/s ({gflops:.0f})", *against(gflops / best, works[name]["share"])]


def memory_rows(results):
    for name, result in results.items():
        for side, peak in result["peaks"].items():
            planned = result["planned"] if side == "plimsoll" else None
            floor = result["floors"][side]
            yield [name, side, f"{peak / MIB:.1f}", f"{floor / MIB:.1f}", f"{(peak - floor) / MIB:.1f}",
                   f"{planned / MIB:.1f}" if planned else "–",
                   f"{(planned - peak) / MIB:+.1f}" if planned else "–"]


def memory_ratio_rows(results, works):
    for name, result in results.items():
        peaks = result["peaks"]
        if "plimsoll" not in peaks:
            continue
        for side in [side for side in peaks if side != "plimsoll"]:
            goal = works[name]["memory"] if side == "eager" else None
            yield [name, f"peak memory against {side}", *against(peaks["plimsoll"] / peaks[side], goal, at_most=True)]
            above = {each: peaks[each] - result["floors"][each] for each in ("plimsoll", side)}
            yield [name, f"peak memory against {side}, imports subtracted", *against(above["plimsoll"] / above[side], None)]
        planned = result["planned"]
        if planned:
            over = planned - peaks["plimsoll"]
            allowed = max(0.03 * peaks["plimsoll"], 32 * MIB)
            verdict = "met" if 0 <= over <= allowed else "missed"
            yield [name, "peak of the bytes written over planned", *against(result["written"] / planned, 1, at_most=True)]
            yield [name, "planned over measured, MiB", f"{over / MIB:+.1f}", f"0 to {allowed / MIB:.0f}", verdict]


def start_rows(results):
    for name, result in results.items():
        for side, seconds in result["starts"].items():
            shown = seconds if isinstance(seconds, list) else [seconds]
            yield [name, side, ", ".join(f"{value:.2f}" for value in shown)]


def gemm_rows(rates):
    shapes = sorted({shape for _, shape, _ in rates})
    for name in sorted({name for name, _, _ in rates}):
        best = {shape: max((r for n, s, r in rates if n == name and s == shape), default=None) for shape in shapes}
        yield [name] + [f"{best[shape]:.0f}" if best[shape] else "–" for shape in shapes]


def is_strict(rates, flags):
    """Whether this is a machine with AVX-512 on which PyTorch's GEMM is about half of the best one."""
    theirs = max((r for name, _, r in rates if name.startswith("PyTorch")), default=None)
    best = max((r for _, _, r in rates), default=None)
    return bool("avx512f" in flags and theirs and theirs <= 0.6 * best)


def page(run):
    """run: date, commit, cpu, memory_bytes, versions, load, command, log_name, rates, results, works, flops, precision."""
    cpu, rates, results, works, precision = run["cpu"], run["rates"], run["results"], run["works"], run["precision"]
    strict = is_strict(rates, cpu["flags"])
    kind = "bf16" if precision == "bf16" else "strict" if strict else "plain"
    if kind == "bf16":
        works = {name: work | work["bf16"] for name, work in works.items()}
    best = max(r for _, _, r in rates)
    shapes = sorted({shape for _, shape, _ in rates})
    checks = [*ratio_rows(results, works, kind), *gemm_share_rows(results, works, best, run["flops"]),
              *memory_ratio_rows(results, works)]
    rule = ("PyTorch's GEMM runs at 0.6 or less of the best rate here, so the higher goals apply." if strict else
            "PyTorch's GEMM runs above 0.6 of the best rate here (or there is no AVX-512), so the lower goals apply.")
    if kind == "bf16":
        rule = "PyTorch trains under autocast to bf16; its weights, gradients and moments are fp32, as Plimsoll's are."
    return f"""{machine.title(f"A training step in {precision} against PyTorch, {run['date']}", run["commit"])}

Written by `{run["command"]}` at commit {run["commit"]}; every line the programs printed is in [{run["log_name"]}]({run["log_name"]}).

- Processor: {machine.named(cpu)}, {run["memory_bytes"] / (1 << 30):.1f} GiB; {" ".join(cpu["flags"])}
- PyTorch {run["versions"].get("torch", "?")}, transformers {run["versions"].get("transformers", "?")}; load average at the start {run["load"]}
- {precision}, {run["threads"]} threads; one whole optimizer step: forward, backward, clipping at norm 1, AdamW, the loss read
- The programs take turns, the order rotates each round, and whoever waits computes nothing

## Goals

{rule}

{table(["work", "figure", "measured", "goal", ""], checks)}

## Speed

Tokens a second: median, least and most of the rounds; `again` is how many rounds were measured again because a program
was more than 10 % off its median in them; `foreign` is the load of all other processes in cores while the round ran.

{table(["work", "program", "median", "spread", "rounds", "again", "foreign"], list(speed_rows(results)))}

## Memory

The most resident memory of the process as the kernel counts it (VmHWM), MiB. The imports are what a process takes that loads the
program's code and ends: `import torch, transformers` (and PEFT) for PyTorch, `plimsoll --version` for Plimsoll.
Plimsoll touches its memory when it starts, so its measured peak is near the plan whatever the steps do; the peak of the bytes written is of a
run that touches nothing in advance (`PLIMSOLL_UNTOUCHED=1`), where only pages that the steps write are resident.

{table(["work", "program", "measured", "imports", "above them", "planned", "difference"], list(memory_rows(results)))}

## Start

Seconds from the start of the process to the end of its first step, less the median step. Plimsoll: first and second start.

{table(["work", "program", "seconds"], list(start_rows(results)))}

## Matrix products

GFLOP/s in {precision}, best of the repetitions.

{table(["implementation"] + ["×".join(map(str, shape)) for shape in shapes], list(gemm_rows(rates)), left=1)}
"""
