"""Runs the program ``plimsoll``: ``python -m plimsoll …``, and the command that the wheel installs."""
from __future__ import annotations

import os
import shutil
import sys


def main() -> int:
    """Replaces this process by the program in the wheel, or else by the one on PATH."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "plimsoll")
    program = inside if os.path.exists(inside) else shutil.which("plimsoll", path=_path_without_this())
    if program is None:
        print("plimsoll: the program is neither in this package nor on PATH", file=sys.stderr)
        return 2
    os.execv(program, [program, *sys.argv[1:]])


def _path_without_this() -> str:
    """PATH without the folder of this command, which would otherwise find and call itself forever."""
    own = os.path.dirname(os.path.abspath(sys.argv[0]))
    return os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if os.path.abspath(part) != own)


if __name__ == "__main__":
    sys.exit(main())
