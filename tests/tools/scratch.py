"""What the tests of the tools share: a folder of their own, and a tool run in it as its user would."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "tools"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Scratch(unittest.TestCase):
    def setUp(self):
        self._dir = tempfile.TemporaryDirectory()
        self.addCleanup(self._dir.cleanup)
        self.dir = pathlib.Path(self._dir.name)

    def run_tool(self, name, *args, env=None):
        return subprocess.run([TOOLS / name, *args], env=env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)
