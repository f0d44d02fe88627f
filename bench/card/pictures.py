"""A folder of pictures, one of each of three classes: `plimsoll bench step` draws its images, and reads from the data which classes
there are.

    python3 pictures.py FOLDER
"""
import pathlib
import struct
import sys
import zlib

SIDE = 32


def png(colour):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * SIDE) * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    for number, name in enumerate(("circle", "square", "triangle")):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "0.png").write_bytes(png((80 * number, 40, 200)))


if __name__ == "__main__":
    main()
