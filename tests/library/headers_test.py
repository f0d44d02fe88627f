"""The C++ interface compiles without a warning for users of g++ and clang++, in C++20 and the next standard, with and without
exceptions; so do the examples and the programs of docs/library.md. The C header is C. Nothing needs to be built.

    python3 tests/library/headers_test.py
"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CONSUMERS = REPOSITORY / "tests/library/consumers"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
NEXT = {"g++": "c++23", "clang++-14": "c++2b"}


def check(compiler, *options):
    command = [compiler, "-fsyntax-only", *WARNINGS, f"-I{REPOSITORY}/include", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stderr[:4000]}")


class Headers(unittest.TestCase):
    def test_users_compile(self):
        for compiler in filter(shutil.which, NEXT):
            for options in (["-std=c++20", CONSUMERS / "main.cpp"], [f"-std={NEXT[compiler]}", CONSUMERS / "loader.cpp"],
                            ["-std=c++20", "-fno-exceptions", CONSUMERS / "results.cpp"]):
                with self.subTest(compiler=compiler, options=options):
                    check(compiler, *options)

    def test_examples_and_the_page_compile(self):
        page = (REPOSITORY / "docs/library.md").read_text()
        programs = {f"page{i}.cpp": text for i, text in enumerate(re.findall(r"```cpp\n(.*?)```", page, re.S))}
        self.assertGreaterEqual(len(programs), 2)
        programs |= {path.name: path.read_text() for path in (REPOSITORY / "examples/library").glob("*.cpp")}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in programs.items():
                source = pathlib.Path(folder, name)
                source.write_text(text)
                with self.subTest(program=name):
                    self.assertLessEqual(len(text.splitlines()), 50 if "page" not in name else 60)
                    check("g++", "-std=c++20", source)

    def test_the_c_header_is_c(self):
        check("gcc", "-std=c99", "-pedantic", "-x", "c", REPOSITORY / "include/plimsoll/plimsoll_c.h")


if __name__ == "__main__":
    unittest.main()
