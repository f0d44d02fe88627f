"""This build's step beside another binary's, or beside itself with other settings, in turns.

    bench/run-versus OTHER_BINARY [--only W1,W2] [--rounds 9] [--precision fp32] [--other "runtime.threads=1"] [--ours "…"]

Prints a table: of each work the median over rounds of the ratio other / ours (above 1: ours is faster), round by round in
turn, and the resident peaks. Needs Python alone.
"""
import argparse
import io
import pathlib
import statistics
import sys

import works as catalogue
from processes import Side


class Log(io.StringIO):
    stderr = sys.stderr


def started(name, binary, work, precision, overrides):
    run_file = catalogue.HERE / work["folder"] / "run.yaml"
    command = [binary, "bench", "step", str(run_file), f"training.precision={precision}", "memory.budget=20GiB", *overrides.split(),
               "--json", "--interactive"]
    side = Side(name, command, Log())
    side.go(1)
    return side


def compare(name, args):
    work = catalogue.WORKS[name]
    sides = {"ours": started("ours", args.binary, work, args.precision, args.ours),
             "other": started("other", args.other_binary, work, args.precision, args.other)}
    try:
        ratios, seconds = [], {"ours": [], "other": []}
        for number in range(args.rounds):
            order = ["ours", "other"] if number % 2 == 0 else ["other", "ours"]
            for side in order:
                event = sides[side].go(work["steps"])
                seconds[side].append(event["seconds"] / event["steps"])
            ratios.append(seconds["other"][-1] / seconds["ours"][-1])
        peaks = {side: sides[side].peak_bytes() / 2**20 for side in sides}
        for side in sides.values():
            side.finish()
    finally:
        for side in sides.values():
            side.stop()
    return ratios, seconds, peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other_binary", metavar="OTHER_BINARY")
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="W1,W2,W2b,W3")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--ours", default="", help="overrides of this build's runs")
    parser.add_argument("--other", default="", help="overrides of the other's")
    args = parser.parse_args()
    args.binary, args.other_binary = (str(pathlib.Path(b).resolve()) for b in (args.binary, args.other_binary))
    print(f"{'work':<6}{'ratio':>8}{'least':>8}{'most':>8}{'ours s':>10}{'other s':>10}{'ours MiB':>10}{'other MiB':>11}")
    for name in args.only.split(","):
        ratios, seconds, peaks = compare(name, args)
        print(f"{name:<6}{statistics.median(ratios):>8.3f}{min(ratios):>8.3f}{max(ratios):>8.3f}"
              f"{statistics.median(seconds['ours']):>10.4f}{statistics.median(seconds['other']):>10.4f}"
              f"{peaks['ours']:>10.0f}{peaks['other']:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
