#!/usr/bin/env python3
"""The tests of ops and the end-to-end tests under each instruction set that this machine has.

    each_isa.py [--build build] [--shards 12] [--shard N] [--tests backends_cpu,runtime,e2e] [--isas portable,avx2]

Runs one of `--shards` parts of each test binary's tests for every instruction set below the fastest one, which the other
stages run. Without --shard the commit's name chooses the part, so that every part has its turn; --shards 1 runs all of them.
Prints a line for each run and what failed; exits with 1 where anything did, or where an instruction set had no test.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ISAS = ["portable", "avx2", "avx512", "avx512_bf16", "amx"]
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sampling  # noqa: E402


def isas_of(program):
    """The instruction sets of this machine, as `plimsoll doctor` names the one it takes under each cap."""
    found = []
    for isa in ISAS:
        done = subprocess.run([program, "doctor"], env={**os.environ, "PLIMSOLL_ISA": isa}, capture_output=True, text=True)
        taken = re.search(r"^\s*kernels\s+(\w+)", done.stdout, re.M)
        if not taken:
            sys.exit(f"each_isa: doctor names no kernels: {done.stdout}{done.stderr}")
        if taken[1] == isa:
            found.append(isa)
    return found


def run(binary, isa, shards, shard):
    """Seconds, number of tests that passed, what failed."""
    environment = {**os.environ, "PLIMSOLL_ISA": isa, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard),
                   "XDG_CACHE_HOME": "/dev/null"}
    if shards > 1:
        environment["PLIMSOLL_PART"] = str(sampling.part_of(60))
    begin = time.monotonic()
    done = subprocess.run([binary], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log = done.stdout.decode(errors="replace")
    passed = re.search(r"^\[  PASSED  \] (\d+) test", log, re.M)
    failed = sorted(set(re.findall(r"^\[  FAILED  \] (\S+?),? ", log, re.M)) - {"1", "2"})
    if done.returncode != 0 and not failed:
        failed = [f"exit code {done.returncode}"]
    if failed:
        print(log[-6000:])
    return time.monotonic() - begin, int(passed[1]) if passed else 0, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--shard", type=int)
    parser.add_argument("--tests", default="backends_cpu,runtime,passes,models,e2e")
    parser.add_argument("--isas", help="instead of all below the fastest")
    arguments = parser.parse_args()
    isas = arguments.isas.split(",") if arguments.isas else isas_of(arguments.build / "plimsoll")[:-1]
    shard = sampling.part_of(arguments.shards) if arguments.shard is None else arguments.shard
    total, lost = 0, []
    for isa in isas:
        before = total
        for name in arguments.tests.split(","):
            seconds, passed, failed = run(arguments.build / "tests" / f"test_{name}", isa, arguments.shards, shard)
            print(f"{isa:<12} {name:<14} part {shard + 1} of {arguments.shards}: {seconds:6.1f} s, {passed} passed", *failed, flush=True)
            total += passed
            lost += failed
        if total == before:
            lost.append(f"{isa} ran no test")
    print(f"[  PASSED  ] {total} tests.")
    if lost:
        print(f"[  FAILED  ] {len(lost)} tests.")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
