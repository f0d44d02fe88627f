"""PNG files of 8 bits, for scripts that make pictures: tools/gather-digits, bench/card/pictures.py, tests/e2e/card_combinations.py."""
import struct
import zlib

COLOR_TYPES = {1: 0, 3: 2}  # grey, RGB


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, pixels, channels):
    """The file of height x width x channels bytes (channels: 1 is grey, 3 RGB)."""
    row = width * channels
    lines = b"".join(b"\0" + bytes(pixels[y * row:(y + 1) * row]) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
