#!/usr/bin/env python3
"""The end-to-end tests on the discrete device with many seeds of its adversary, against the CPU.

    seeds.py [--binary build/tests/test_e2e] [--first 1] [--last 20] [--filter '*'] [--timeout 600] [--cpu FILE]

Each run of each test leaves a line with sums of its losses, norms and final weights; those of a seed must be the
CPU's. --cpu keeps the CPU's lines in a file, or takes them from there where it exists. Prints a line a seed: seconds,
tests, runs compared; what failed, differed or hung; exits with 1 where anything did.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Stopped at no fixed step, or while a checkpoint is written that may be whole by then: what is said of each step is not
# the same twice. The tests themselves hold the final weights to those of an undisturbed run.
AT_NO_FIXED_STEP = ("Signals.", "Eval.ASignal", "ErrorsTest.AKilled", "Fault.")


def run(arguments, device, record):
    """Seconds, the log, whether it hung; the lines it left are in `record`."""
    environment = {**os.environ, "PLIMSOLL_E2E_DEVICE": device, "PLIMSOLL_E2E_RECORD": str(record)}
    begin = time.monotonic()
    try:
        done = subprocess.run([arguments.binary, f"--gtest_filter={arguments.filter}"], env=environment,
                              timeout=arguments.timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log, hung = done.stdout, False
    except subprocess.TimeoutExpired as error:
        log, hung = error.stdout or b"", True
    return time.monotonic() - begin, log.decode(errors="replace"), hung


def lines_of(record):
    lines = record.read_text().splitlines() if record.exists() else []
    return [line for line in lines if not line.startswith(AT_NO_FIXED_STEP)]


def troubles(log, hung):
    found = sorted(set(re.findall(r"^\[  FAILED  \] (\S+?),? ", log, re.M)))
    if hung:
        found.append("hung in " + (re.findall(r"^\[ RUN      \] (\S+)", log, re.M) or ["?"])[-1])
    elif not re.search(r"^\[==========\] \d+ tests? .* ran\.", log, re.M):
        found.append("ended early: " + log[-500:])
    return found


def cpu_lines(arguments, folder):
    record = pathlib.Path(arguments.cpu or folder / "cpu")
    if record.exists():
        return lines_of(record)
    seconds, log, hung = run(arguments, "", record)
    found = troubles(log, hung)
    print(f"cpu: {seconds:.1f} s, {len(lines_of(record))} runs", *found, flush=True)
    if found:
        sys.exit(log[-3000:])
    return lines_of(record)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/tests/test_e2e")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--last", type=int, default=20)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--cpu")
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected = cpu_lines(arguments, folder)
        for seed in range(arguments.first, arguments.last + 1):
            record = folder / f"seed-{seed}"
            device = f"runtime.device=discrete runtime.discrete.seed={seed} runtime.discrete.check=true"
            seconds, log, hung = run(arguments, device, record)
            found = troubles(log, hung)
            lines = lines_of(record)
            found += [f"differs: {line}" for line in sorted(set(lines) ^ set(expected))]
            tests = len(re.findall(r"^\[       OK \]", log, re.M))
            print(f"seed {seed}: {seconds:.1f} s, {tests} tests, {len(lines)} runs compared", *found[:20], sep="\n  ",
                  flush=True)
            failed = failed or bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
