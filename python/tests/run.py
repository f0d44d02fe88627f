#!/usr/bin/env python3
"""Runs the tests of the Python package, with an interpreter that has numpy.

    python/tests/run.py LIBRARY [--python PYTHON] [TEST…]

LIBRARY is libplimsoll.so.0. The interpreter is PYTHON, or PLIMSOLL_PYTHON, or this one, or .venv-bench's, or Debian's: the
first that has numpy, one with PyTorch before others. Exit code 77: none has numpy.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def has(python, package):
    try:
        return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0
    except OSError:
        return False


def interpreter(named):
    if named:
        return named
    candidates = [os.environ.get("PLIMSOLL_PYTHON"), str(ROOT / ".venv-bench/bin/python"), sys.executable, "/usr/bin/python3"]
    with_numpy = [python for python in candidates if python and has(python, "numpy")]
    return next((python for python in with_numpy if has(python, "torch")), with_numpy[0] if with_numpy else None)


def main():
    library, *names = sys.argv[1:]
    named = None
    if names[:1] == ["--python"]:
        named, names = names[1], names[2:]
    python = interpreter(named)
    if python is None:
        print("[  SKIPPED ] PythonPackage.All: no Python has numpy")
        return 77
    if not has(python, "torch"):
        print("[  SKIPPED ] PythonPackage.Torch: PyTorch is not installed")
    environment = {**os.environ, "PLIMSOLL_LIBRARY": os.path.abspath(library), "PYTHONPATH": str(ROOT / "python")}
    tests = names or ["discover", "-s", str(ROOT / "python/tests"), "-t", str(ROOT / "python/tests")]
    return subprocess.run([python, "-m", "unittest", *tests], cwd=ROOT / "python/tests", env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
