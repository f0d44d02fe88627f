"""A folder of pictures, one of each of three classes: `plimsoll bench step` draws its images, and reads from the data which classes
there are.

    python3 pictures.py FOLDER
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from png_file import png  # noqa: E402

SIDE = 32


def main():
    for number, name in enumerate(("circle", "square", "triangle")):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0.png").write_bytes(png(SIDE, SIDE, bytes((80 * number, 40, 200)) * SIDE * SIDE, 3))


if __name__ == "__main__":
    main()
