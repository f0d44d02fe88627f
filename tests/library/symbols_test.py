"""The C interface's symbols are frozen in debian/libplimsoll0.symbols: the header declares them, the library exports them,
and neither has any other.

    python3 tests/library/symbols_test.py build
"""
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build").resolve()
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MOST = 50  # a narrow waist


class Symbols(unittest.TestCase):
    def setUp(self):
        text = (REPOSITORY / "debian/libplimsoll0.symbols").read_text()
        self.frozen = sorted(re.findall(r"^ (pls_\w+)@PLIMSOLL_0 ", text, re.M))

    def test_the_header_declares_what_is_frozen(self):
        header = (REPOSITORY / "include/plimsoll/plimsoll_c.h").read_text()
        self.assertEqual(sorted(re.findall(r"^PLS_API [^(]*?\b(pls_\w+)\(", header, re.M)), self.frozen)
        self.assertLessEqual(len(self.frozen), MOST)

    def test_the_library_exports_what_is_frozen(self):
        said = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", BUILD / "libplimsoll.so.0"], check=True,
                              capture_output=True, text=True).stdout
        exported = sorted(line.split()[0] for line in said.splitlines() if line.split()[1] != "A")  # A: the version itself
        self.assertEqual(exported, [f"{name}@@PLIMSOLL_0" for name in self.frozen])


if __name__ == "__main__":
    unittest.main()
