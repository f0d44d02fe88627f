#!/usr/bin/env python3
"""Any heap may be preloaded: one that ends the process where it is given a block of another's sees a run to its end, with
the model of the undisturbed run, and the run still counts what it asks of the heap.

    other_heap.py --binary build/plimsoll --heap build/tests/libplimsoll_other_heap.so
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from campaign import MODELS, model_of, run_file, write_inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--heap", required=True)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    with tempfile.TemporaryDirectory(prefix="plimsoll-heap-") as name:
        folder = pathlib.Path(name)
        write_inputs(folder, run_file(MODELS["llama"], 4, 2, 1, True))

        def run(arguments, **environment):
            return subprocess.run([binary, *arguments], cwd=folder, env={**os.environ, **environment}, timeout=120,
                                  capture_output=True, text=True)

        def train(**environment):
            shutil.rmtree(folder / "out", ignore_errors=True)
            done = run(["train", "run.yaml", "--json", "runtime.threads=2", "memory.budget=512MiB"], **environment)
            assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
            return model_of(folder), json.loads(done.stdout.splitlines()[-1])

        heap = {"LD_PRELOAD": str(pathlib.Path(options.heap).resolve())}
        version = run(["--version"], **heap)
        assert version.returncode == 0, f"--version: exit {version.returncode}: {version.stderr}"
        expected, plain = train()
        model, summary = train(**heap)
        assert model == expected, "another model"
        figure = "allocations_after_first_step"  # small ones depend on when a checkpoint is written beside the steps
        assert summary[figure] == plain[figure], f"{figure}: {summary[figure]}, without it {plain[figure]}"
    print("other heap: well")


if __name__ == "__main__":
    sys.exit(main())
