"""Bottlenecks that are really planted (plants.py), and whether `plimsoll profile` names each of them first - and does not
in the same run without it. Writes bench/results/<date>-verdict-<machine>.md and the raw log beside it.

    bench/run-verdict [--only "slow disk,tiny batch"] [--active 8] [--rounds 1]

About 2 minutes on two cores. It needs a machine of its own: what else runs there is a bottleneck too. Exits with 1 where
another finding comes first, or the planted one without its plant.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "step"))

import machine  # noqa: E402
from plants import PLANTS, write_data  # noqa: E402
from report import table  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

SHOWN = 3  # findings of each run on the page


class Failed(Exception):
    pass


def program(work, arguments, environment=None):
    """The last object that it printed."""
    command = [str(pathlib.Path(work.args.binary).resolve()), *arguments]
    work.log.write(f"$ {machine.shown(command)}\n")
    done = subprocess.run(command, cwd=work.args.work, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=120)
    work.log.write("".join(line + "\n" for line in done.stdout.splitlines() if '"event": "verdict"' in line))
    if done.returncode != 0:
        raise Failed(done.stderr.strip()[-300:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def verdict(work, plant, side):
    def run_file(budget=None):
        model, settings = plant.run(side, budget)
        (work.args.work / "run.yaml").write_text(json.dumps(
            {"model": {"config": model, "init": "random"}, "data": {"train": side.data}, "output": {"dir": "out"}}))
        return ["run.yaml", "--json", *(f"{key}={value}" for key, value in settings.items())]

    arguments = run_file()
    if side.budget:
        peak = program(work, ["plan", *arguments])["process_peak_bytes"]
        arguments = run_file(int(side.budget * peak))
    environment = dict(side.environment)
    if environment:
        environment["LD_PRELOAD"] = str(work.args.work / "slow_reads.so")
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(side.neighbours)]
    try:
        return program(work, ["profile", *arguments, "--active", str(work.args.active), "--output", "profile"], environment)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def first(event):
    return event["findings"][0]["what"]


def shown(event):
    return ", ".join(f"{f['what']} {100 * f['share']:.0f}%" for f in event["findings"][:SHOWN])


def measure(work):
    """[(plant, [(its verdict, the control's)])]; a run that failed is its message."""
    only = [name.strip() for name in work.args.only.split(",") if name.strip()]
    results = []
    for plant in PLANTS:
        if only and plant.name not in only:
            continue
        rounds = []
        for _ in range(work.args.rounds):
            try:
                rounds.append((verdict(work, plant, plant.planted), verdict(work, plant, plant.control)))
            except Failed as failure:
                progress(f"{plant.name}: failed: {failure}")
                continue
            planted, control = rounds[-1]
            progress(f"{plant.name:14} {'yes' if is_named(plant, rounds[-1:]) else 'NO'}: {1e3 * planted['step_seconds']:.1f} ms: {shown(planted)}"
                     f"; without: {1e3 * control['step_seconds']:.1f} ms: {shown(control)}")
        results.append((plant, rounds))
    return results


def is_named(plant, rounds):
    return bool(rounds) and all(first(planted) == plant.expected != first(control) for planted, control in rounds)


def page(r):
    rows = []
    for plant, rounds in r["results"]:
        named = sum(first(planted) == plant.expected for planted, _ in rounds)
        falsely = sum(first(control) == plant.expected for _, control in rounds)
        if rounds:
            planted, control = rounds[-1]
            rows.append([plant.name, plant.what, f"{named} of {len(rounds)}", f"{falsely} of {len(rounds)}",
                         f"{1e3 * planted['step_seconds']:.1f} ms: {shown(planted)}", f"{1e3 * control['step_seconds']:.1f} ms: {shown(control)}"])
        else:
            rows.append([plant.name, plant.what, "failed", "", "", ""])
    cpu = r["cpu"]
    return f"""{machine.title(f"The verdict on planted bottlenecks, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; the verdicts are in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(cpu)}, uncalibrated
- {r["active"]} steps of a run, {r["rounds"]} a side in turn; load average at the start {r["load"]}

Each run is slow for one reason, which `plimsoll profile` is to name first, and stands beside the same run without it, of which it is not to.
The findings are the last round's, as shares of a step.

{table(["planted", "how", "named first", "without it", "findings", "findings without it"], rows, left=6)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-verdict", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--active", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    add_arguments(parser, gigabytes=1)
    args = parser.parse_args()
    with Workplace(args, "verdict", "bench/run-verdict") as work:
        write_data(work.args.work)
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(work.args.work / "slow_reads.so"), str(HERE / "slow_reads.c"), "-ldl"], check=True)
        results = measure(work)
    work.publish(page(work.about | dict(results=results, active=args.active, rounds=args.rounds)))
    return 0 if all(is_named(plant, rounds) for plant, rounds in results) else 1


if __name__ == "__main__":
    sys.exit(main())
