"""Looks at the wheel that `make wheel` made: its tag, what lies in it, and that the same tree gives the same bytes a second
time; installs it into an environment of its own, where the package trains and the program runs. The package passes mypy --strict.

    python3 tests/library/wheel_test.py build
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build").resolve()
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PYTHON = REPOSITORY / ".venv-wheel/bin/python"
TRAINS = """
import numpy as np, plimsoll as pl
class Net(pl.Module):
    def __init__(self):
        self.layer = pl.Linear(4, 1)
    def forward(self, x, y):
        return pl.mse(self.layer(x), y)
plan = pl.plan(Net(), inputs={"x": ((8, 4), "float32"), "y": ((8, 1), "float32")}, optimizer=pl.SGD(lr=0.1), memory_budget="64MiB")
x = np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 4)
with pl.Session(plan, seed=0) as session:
    losses = [session.step({"x": x, "y": x[:, :1]}).loss for _ in range(10)]
assert losses[-1] < losses[0], losses
print(pl.__file__)
"""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Wheel(unittest.TestCase):
    def setUp(self):
        self.wheel = next((BUILD / "wheel").glob("*.whl"))

    def test_what_lies_in_it(self):
        self.assertRegex(self.wheel.name, r"^plimsoll-[\d.]+-py3-none-manylinux_2_34_x86_64\.whl$")
        self.assertLessEqual(self.wheel.stat().st_size, 8 << 20)
        names = zipfile.ZipFile(self.wheel).namelist()
        for name in ("plimsoll/__init__.py", "plimsoll/py.typed", "plimsoll/lib/libplimsoll.so.0", "plimsoll/bin/plimsoll"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "__pycache__" in name or "cuda" in name.lower().split("/")[-1].split(".")[0] and name.endswith(".so")])
        bundled = [pathlib.PurePath(name).name for name in names if name.startswith("plimsoll.libs/") and ".so" in name]
        self.assertTrue(bundled)
        for name in bundled:
            self.assertRegex(name, r"-[0-9a-f]{8}\.so", "a bundled library has a name of its own")

    def test_it_may_run_where_its_tag_says(self):
        said = run(PYTHON.with_name("auditwheel"), "show", self.wheel)
        self.assertIn("manylinux_2_34_x86_64", " ".join(said.split()))

    def test_the_same_tree_gives_the_same_bytes(self):
        before = hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        run(REPOSITORY / "tools/package-wheel", BUILD)
        self.assertEqual(hashlib.sha256(self.wheel.read_bytes()).hexdigest(), before)

    def test_installed_it_trains_and_its_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder, "site")
            run(PYTHON, "-m", "pip", "install", "--no-index", "--no-deps", "--target", site, self.wheel)
            alone = {key: value for key, value in os.environ.items() if not key.startswith("PLIMSOLL_")} | {"PYTHONPATH": str(site)}
            self.assertTrue(run(PYTHON, "-c", TRAINS, env=alone, cwd=folder).strip().startswith(str(site)))
            self.assertRegex(run(PYTHON, "-m", "plimsoll", "--version", env=alone, cwd=folder), r"^plimsoll \d+\.\d+")
            self.assertRegex(run(site / "bin/plimsoll", "--version", env=alone, cwd=folder), r"^plimsoll \d+\.\d+")

    def test_the_source_distribution_builds_or_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            for attempt in ("first", "second"):
                run(REPOSITORY / "tools/package-sdist", pathlib.Path(folder, attempt))
            first, second = (next(pathlib.Path(folder, attempt).iterdir()) for attempt in ("first", "second"))
            self.assertEqual(first.read_bytes(), second.read_bytes())
            self.assertLessEqual(first.stat().st_size, 4 << 20)
            lacking = pathlib.Path(folder, "packages.txt")
            lacking.write_text("libplimsoll-needs-this-dev=1.0-1\n")
            refused = subprocess.run([PYTHON, "-m", "pip", "wheel", "--no-index", "--no-deps", "-w", folder, first], text=True,
                                     capture_output=True, env=os.environ | {"PLIMSOLL_PACKAGES": str(lacking)})
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("missing: libplimsoll-needs-this-dev", refused.stdout + refused.stderr)
            run("tar", "-C", folder, "-xf", first)
            tree = next(path for path in pathlib.Path(folder).iterdir() if path.name.startswith("plimsoll-"))
            run("cmake", "-S", tree, "-B", pathlib.Path(folder, "build"), "-G", "Ninja", "-DPLIMSOLL_TESTS=OFF", "-DPLIMSOLL_BENCH=OFF")

    def test_its_types_are_strict(self):
        """All but plimsoll.torch, which is checked where PyTorch is installed beside."""
        mypy = [PYTHON, "-m", "mypy", "--strict", "--cache-dir", os.devnull]
        run(*mypy, "-p", "plimsoll", "--exclude", "torch", cwd=REPOSITORY / "python")
        bench = REPOSITORY / ".venv-bench/bin/python"
        if bench.is_file():
            run(*mypy, "--python-executable", bench, "--follow-imports", "silent", "-p", "plimsoll.torch",
                cwd=REPOSITORY / "python")


if __name__ == "__main__":
    unittest.main()
