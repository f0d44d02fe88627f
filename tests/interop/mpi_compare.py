"""Trains ranks that exchange by PyPI's MPICH, through the standard's binary interface of MPI and through MPICH's own.

    python mpi_compare.py --binary build/plimsoll

The weights must have the bits of the same ranks by shared memory. The libraries and the launcher are those of the interpreter's
environment. Debian's Open MPI and MPICH, which have the two older interfaces, are tested by tests/e2e/mpi_test.cpp. One line per
check, PASS or FAIL.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import cases
from checks import Checks

ENVIRONMENT = pathlib.Path(sys.prefix)
LIBRARIES = {"the standard's interface": "libmpi_abi.so.1", "MPICH's interface": "libmpi.so.12"}
RANKS = "2"


def train(folder, name, command, *overrides):
    """The run's stderr, and its weights."""
    done = subprocess.run([*command, "train", "run.yaml", f"output.dir={name}", *overrides], cwd=folder, text=True,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return done.stderr, (folder / name / "final" / "model.safetensors").read_bytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    binary = str(parser.parse_args().binary.resolve())
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "train.txt").write_text("".join(f"line {i} of the text\n" for i in range(2000)))
        run = {"model": {"config": cases.LLAMA, "init": "random"}, "data": {"train": "train.txt", "sequence_length": 32},
               "training": {"global_batch_size": 7, "max_steps": 4, "seed": 5}, "runtime": {"threads": 1}}
        (folder / "run.yaml").write_text(json.dumps(run) + "\n")
        _, shm = train(folder, "shm", [binary, "launch", "--ranks", RANKS, "--"])
        for interface, library in LIBRARIES.items():
            path = ENVIRONMENT / "lib" / library
            said, weights = train(folder, library, [str(ENVIRONMENT / "bin" / "mpiexec"), "-n", RANKS, binary],
                                  "distributed.transport=mpi", f"distributed.library={path}")
            checks.check(interface, "is opened", "ranks exchange gradients through MPICH Version: 5" in said and str(path) in said, path.name)
            checks.check(interface, "the weights have the bits of shared memory", weights == shm, f"{len(weights)} bytes")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
