"""How little memory a step takes and how fast it is there, beside PyTorch, in turn.

    bench/run-memory [--rounds 3] [--threads 2]

W2 and W2b (SmolLM-135M's shape) in settings of ours, most of them under the least budget that the program names for them,
beside eager PyTorch without and with gradient checkpointing. Ratios are of one round's figures; peaks are VmHWM.
"""
import argparse
import re
import statistics
import subprocess
import sys

import works as catalogue
from processes import Side
from report import table
from workplace import Workplace, add_arguments, progress

LEAST = "least"
BF16 = ("training.precision=bf16 training.state.weights=bf16 training.state.master_weights=false "
        "training.state.gradients=bf16 training.optimizer=adafactor")
# Name, settings, budget; and what the peak is compared with: a factor of eager PyTorch's.
OURS = {
    "W2": [("AdamW, nothing given up", "", None, None),
           ("8-bit AdamW within 1,700 MiB", "training.optimizer=adamw_8bit", "1700MiB", 0.45),
           ("8-bit AdamW, least", "training.optimizer=adamw_8bit", LEAST, 0.40),
           ("Adafactor, least", "training.optimizer=adafactor", LEAST, 0.40),
           ("bf16 weights, Adafactor, least", BF16, LEAST, 0.22)],
    "W2b": [("AdamW, nothing given up", "", None, None), ("AdamW, least", "", LEAST, 0.5)],
}
# The bound by the global norm needs every gradient at once; without it each goes as soon as it was used.
UNCLIPPED = [("8-bit AdamW, no clipping, least", "training.optimizer=adamw_8bit training.max_grad_norm=0", LEAST, 0.40),
             ("bf16 weights, Adafactor, no clipping, least", BF16 + " training.max_grad_norm=0", LEAST, 0.22)]


def run_file(work):
    return str(catalogue.HERE / work["folder"] / "run.yaml")


def least_budget(binary, work, settings, threads):
    """Bytes, as the program names them."""
    done = subprocess.run([binary, "plan", run_file(work), *settings, f"runtime.threads={threads}", "memory.budget=1MiB"],
                          capture_output=True, text=True)
    return int(re.search(r"\((\d+) bytes\)", done.stderr).group(1))


def settings_of(args, work, entry):
    _, settings, budget, _ = entry
    settings = settings.split()
    if budget == LEAST:
        budget = least_budget(args.binary, work, settings, args.threads)
    return [*settings, f"memory.budget={budget or '20GiB'}"]


def our_side(args, work, entry, log):
    return Side(entry[0], [args.binary, "bench", "step", run_file(work), *settings_of(args, work, entry),
                           f"runtime.threads={args.threads}", "--json", "--interactive"], log)


def their_side(args, work, checkpointing, log):
    return Side("PyTorch" + (", checkpointing" if checkpointing else ""),
                [sys.executable, str(catalogue.HERE / "peer.py"), "--config",
                 str(catalogue.HERE / work["folder"] / "config.json"), "--batch", str(work["batch"]), "--tokens",
                 str(work["tokens"]), "--threads", str(args.threads)] + (["--checkpointing"] if checkpointing else []), log)


def measure(args, name, log):
    """Rows: name, tokens a second by round, peak, planned peak or none, goal."""
    work = catalogue.WORKS[name]
    entries = OURS[name] + (UNCLIPPED if name == "W2" else [])
    sides = [(their_side(args, work, False, log), None), (their_side(args, work, True, log), 1.0)]
    sides += [(our_side(args, work, entry, log), entry[3]) for entry in entries]
    rates = [[] for _ in sides]
    try:
        for side, _ in sides:
            progress(f"{name}: {side.name}")
            side.go(1)
        for number in range(args.rounds):
            for i in range(len(sides)):
                at = (i + number) % len(sides)
                event = sides[at][0].go(work["steps"])
                rates[at].append(work["batch"] * work["tokens"] * event["steps"] / event["seconds"])
        peaks = [side.peak_bytes() for side, _ in sides]
        planned = [side.finish().get("planned_peak_bytes") for side, _ in sides]
    finally:
        for side, _ in sides:
            side.stop()
    return [(side.name, rates[i], peaks[i], planned[i] if i > 1 else None, goal) for i, (side, goal) in enumerate(sides)]


def rows_of(measured):
    eager = measured[0]
    for name, rates, peak, planned, goal in measured:
        yield [name, f"{statistics.median(rates):.0f}", f"{statistics.median(a / b for a, b in zip(rates, eager[1])):.2f}",
               f"{peak / 2**20:,.0f}", f"{planned / 2**20:,.0f}" if planned else "", f"{peak / eager[2]:.3f}",
               f"{goal}" if goal and goal < 1 else ""]


def page(run):
    text = (f"# A step in little memory, {run['date']}\n\n{run['cpu']['model']}, {run['threads']} threads, commit {run['commit']}, load before {run['load']}. "
            f"`{run['command']}`; raw log: {run['log_name']}.\n\nThe least is the budget that `plimsoll plan` names. PyTorch is eager fp32 "
            "with fused AdamW; each side takes its turn in every round. Peaks are the kernel's VmHWM.\n")
    for name, measured in run["results"].items():
        text += f"\n## {name}\n\n" + table(["", "tokens/s", "of eager", "peak, MiB", "planned", "of eager's peak", "goal"], list(rows_of(measured)), left=1) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(prog="bench/run-memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, 0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="W2,W2b")
    args = parser.parse_args()
    with Workplace(args, "memory", "bench/run-memory") as place:
        results = {name: measure(args, name, place.log) for name in args.only.split(",")}
        place.publish(page(place.about | {"threads": args.threads, "results": results}))


if __name__ == "__main__":
    main()
