"""Stages `make install` from a build folder and looks at what lies there: the program runs through its link and knows its
own overhead, manual pages and completion are there; where lintian is at hand the package has nothing to complain of.

    python3 tests/tools/install_test.py build
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop() if len(sys.argv) > 1 else "build").resolve()
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


class Install(unittest.TestCase):
    def test_what_is_staged_works(self):
        with tempfile.TemporaryDirectory() as stage:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr", "--strip"], check=True,
                           stdout=subprocess.DEVNULL, env=os.environ | {"DESTDIR": stage})
            usr = pathlib.Path(stage, "usr")
            program = usr / "bin/plimsoll"
            self.assertTrue(program.is_symlink())
            self.assertFalse(os.path.isabs(os.readlink(program)), "a staged link must not lead out of the stage")
            said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
            self.assertRegex(said, r"^plimsoll \d+\.\d+\.\d+")
            self.assertTrue(program.resolve().with_name("plimsoll.overhead").is_file())
            for page in ("man1/plimsoll.1", "man1/plimsoll-train.1", "man5/plimsoll-run.5"):
                self.assertTrue((usr / "share/man" / page).is_file(), page)
            for script in ("bash-completion/completions/plimsoll", "zsh/vendor-completions/_plimsoll"):
                self.assertGreater((usr / "share" / script).stat().st_size, 1000, script)

    @unittest.skipUnless(shutil.which("lintian") and shutil.which("dh"), "no lintian here")
    def test_the_packages_are_clean(self):
        subprocess.run([REPOSITORY / "tools/package-deb"], check=True, stdout=subprocess.DEVNULL)
        packages = sorted((REPOSITORY / "build").glob("*.deb"))
        self.assertEqual([package.name.split("_")[0] for package in packages],
                         ["libplimsoll-dev", "libplimsoll0", "plimsoll", "python3-plimsoll"])
        for package in packages:
            self.assertLess(package.stat().st_size, 20 << 20)
        said = subprocess.run(["lintian", "--allow-root", *packages], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout.strip()), (0, ""))


if __name__ == "__main__":
    unittest.main()
