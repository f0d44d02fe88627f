"""Every Python example of docs/library.md runs, one behind the other, as a reader would type them; and names are documented."""
import contextlib
import inspect
import io
import os
import re
import tempfile
import unittest

import common
import plimsoll as pl

PAGE = common.ROOT / "docs" / "library.md"


class Examples(unittest.TestCase):
    def test_run(self):
        blocks = re.findall(r"^```python( torch)?\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 8)
        names, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            try:
                for number, (torch, code) in enumerate(blocks, 1):
                    if common.HAS_TORCH or not torch:
                        exec(compile(code, f"docs/library.md, example {number}", "exec"), names)
            finally:
                os.chdir(before)


class Names(unittest.TestCase):
    def test_all_are_documented_and_typed(self):
        for name in pl.__all__:
            item = getattr(pl, name)
            self.assertTrue(inspect.getdoc(item), name)
            for at, member in vars(item).items() if inspect.isclass(item) else ((None, item),):
                if at is not None and at.startswith("_") or not inspect.isfunction(member):
                    continue
                self.assertTrue(inspect.getdoc(member), f"{name}.{at}")
                hints = {p for p, v in inspect.signature(member).parameters.items() if p != "self" and v.annotation is v.empty}
                self.assertEqual(hints, set(), f"{name}.{at}")

    def test_the_lists_agree(self):
        self.assertTrue(set(pl.functional.__all__) - {"eq", "index", "embedding", "layer_norm", "linear", "rms_norm"}
                        <= set(pl.__all__))


if __name__ == "__main__":
    unittest.main()
