"""The C++ interface compiles without a warning for users of g++ and clang++, in C++20 and the next standard, with and without
exceptions. The C header is C. Nothing needs to be built.

    python3 tests/library/headers_test.py
"""
import pathlib
import shutil
import subprocess
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

    def test_the_c_header_is_c(self):
        check("gcc", "-std=c99", "-pedantic", "-x", "c", REPOSITORY / "include/plimsoll/plimsoll_c.h")


if __name__ == "__main__":
    unittest.main()
