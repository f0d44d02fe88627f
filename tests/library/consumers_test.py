"""Installs the library from a build folder, moves the tree, and builds programs of others against it by find_package and by
pkg-config: two translation units, no exceptions, the examples, the programs of docs/library.md. They run. Of examples and
programs of the page those that changed and a third of the rest, which the commit chooses; PLIMSOLL_WHOLE_CAMPAIGN: all.

    python3 tests/library/consumers_test.py build
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build").resolve()
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONSUMERS = REPOSITORY / "tests/library/consumers"
sys.path.insert(0, str(REPOSITORY / "tools"))
import sampling  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
PYTHONS = [sys.executable, *(path for name in ("bench", "wheel") for path in REPOSITORY.glob(f".venv-{name}/bin/python"))]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def chosen(names, file_of):
    """A third of the names, and those whose files changed: each takes seconds to compile."""
    whole = "PLIMSOLL_WHOLE_CAMPAIGN" in os.environ
    return sampling.sample(names, 1 if whole else 3, lambda name: str(file_of(name)) in sampling.changed())


class Consumers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        work = cls.work = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", work / "first", "--component", "library", "--strip")
        cls.prefix = (work / "first").rename(work / "moved there")
        cls.libraries = next(cls.prefix.rglob("libplimsoll.so")).parent

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def flags(self):
        environment = os.environ | {"PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        return shlex.split(run("pkg-config", "--cflags", "--libs", "plimsoll", env=environment))

    def test_find_package_in_two_translation_units_and_without_exceptions(self):
        build = self.work / "cmake"
        run("cmake", "-S", CONSUMERS, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_CXX_STANDARD=20")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "two_units", self.work / "saved"), "ok\n")
        self.assertTrue((self.work / "saved/model.safetensors").is_file())
        for program in ("results", "loader"):
            self.assertEqual(run(build / program), "ok\n")

    def test_a_run_in_python_has_the_same_bits(self):
        python = next((p for p in PYTHONS if subprocess.run([p, "-c", "import numpy"], capture_output=True).returncode == 0), None)
        if python is None:
            self.skipTest("no Python here has numpy")
        program = self.work / "same_run"
        run("g++", "-std=c++20", *WARNINGS, CONSUMERS / "same_run.cpp", "-o", program, *self.flags())
        run(program, self.work / "by C++")
        twin = os.environ | {"PYTHONPATH": str(REPOSITORY / "python"), "PLIMSOLL_LIBRARY": str(self.libraries / "libplimsoll.so.0")}
        run(python, CONSUMERS / "same_run.py", self.work / "by Python", env=twin)
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual((self.work / "by C++" / name).read_bytes(), (self.work / "by Python" / name).read_bytes(), name)

    def test_the_examples_run_by_pkg_config(self):
        folder = pathlib.Path("examples/library")
        names = sorted(path.name for path in (REPOSITORY / folder).glob("*.cpp"))
        for example in (REPOSITORY / folder / name for name in chosen(names, lambda name: folder / name)):
            with self.subTest(example=example.name):
                self.assertLessEqual(len(example.read_text().splitlines()), 50)
                program = self.work / example.stem
                run("g++", "-std=c++20", *WARNINGS, example, "-o", program, *self.flags())
                said = run(program, cwd=self.work)
                losses = [float(loss) for loss in re.findall(r"^(?:\d+ )?(\d+\.\d{4})\b", said, re.M)]
                self.assertGreater(len(losses), 3)
                self.assertLess(losses[-1], losses[0])

    def test_the_programs_of_the_page_run(self):
        blocks = re.findall(r"```cpp\n(.*?)```", (REPOSITORY / "docs/library.md").read_text(), re.S)
        self.assertGreaterEqual(len(blocks), 2)
        for number in chosen(range(len(blocks)), lambda number: "docs/library.md"):
            block = blocks[number]
            with self.subTest(block=number):
                source = self.work / f"page{number}.cpp"
                source.write_text(block)
                run("g++", "-std=c++20", *WARNINGS, source, "-o", source.with_suffix(""), *self.flags())
                self.assertRegex(run(source.with_suffix(""), cwd=self.work), r"\d\.\d{3}")


if __name__ == "__main__":
    unittest.main()
