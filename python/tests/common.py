"""What the tests share: the library that was built, and PyTorch where it is installed."""
import importlib.util
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
EXAMPLES = ROOT / "examples" / "library"

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None
needs_torch = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")


def example(name):
    """A module of examples/library."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def environment():
    """For child processes: the package and the library of this one."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "python")}
