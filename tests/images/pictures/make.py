#!/usr/bin/env python3
"""Writes the pictures beside it, and beside each NAME its pixels as Pillow has them: NAME.rgb is raw RGB, upright, and
behind it the same resized to 9 x 7 by Pillow, bicubic. changes.rgb has a picture after each change of torchvision's
automatic augmentations. Needs the packages of bench/requirements.txt:
`.venv-bench/bin/python tests/images/pictures/make.py`."""
import pathlib
import struct
import zlib

import numpy as np
import torch
from PIL import Image, ImageOps
from torchvision.transforms import v2

here = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 17, 23
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
rgb = np.stack([9 * x + 2 * y, 250 - 11 * y, 30 * ((x // 4 + y // 3) % 8)], -1).clip(0, 255).astype(np.uint8)
alpha = ((x * 12 + y * 7) % 256).astype(np.uint8)
SMALL = (7, 9)  # height, width


def record(name, image, pixels=None):
    upright = ImageOps.exif_transpose(image).convert("RGB") if pixels is None else Image.fromarray(pixels)
    small = upright.resize((SMALL[1], SMALL[0]), Image.Resampling.BICUBIC)
    (here / f"{name}.rgb").write_bytes(upright.tobytes() + small.tobytes())


def save(name, image, **options):
    image.save(here / name, **options)
    record(name, Image.open(here / name))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, samples, depth, color_type, interlace=False, pixels=None):
    """A PNG of samples [height, width, channels], of depths and orders that Pillow does not write."""
    def rows(part):
        out = b""
        for line in part:
            if depth == 16:
                out += b"\0" + line.astype(">u2").tobytes()
            elif depth == 8:
                out += b"\0" + line.astype(np.uint8).tobytes()
            else:
                bits = "".join(format(int(v), f"0{depth}b") for v in line.reshape(-1))
                bits += "0" * (-len(bits) % 8)
                out += b"\0" + bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        return out
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)] if interlace else [(0, 0, 1, 1)]
    data = b"".join(rows(samples[y0::dy, x0::dx]) for x0, y0, dx, dy in passes if samples[y0::dy, x0::dx].size)
    header = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], depth, color_type, 0, 0, int(interlace))
    packed = zlib.compress(data)
    half = len(packed) // 2
    (here / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"Comment\0x")
                              + chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:]) + chunk(b"IEND", b""))
    record(name, Image.open(here / name), pixels)


image = Image.fromarray(rgb)
save("fine.jpg", image, quality=95, subsampling=0)
save("usual.jpg", image, quality=75)
save("sampled.jpg", image, quality=60, subsampling=1)
save("progressive.jpg", image, quality=80, progressive=True, icc_profile=b"x" * 40)
save("restarts.jpg", image, quality=80, restart_marker_blocks=1)
save("grey.jpg", image.convert("L"), quality=80)
save("cmyk.jpg", image.convert("CMYK"), quality=90)
for orientation in range(2, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    save(f"turned{orientation}.jpg", image, quality=90, exif=exif)
exif = Image.Exif()
exif[0x0112] = 6
save("turned6.png", image, exif=exif)
save("rgb.png", image)
save("palette.png", image.quantize(11), transparency=2)
wide = np.concatenate([rgb, alpha[..., None]], -1)
save("rgba.png", Image.fromarray(wide, "RGBA"))
grey = np.asarray(image.convert("L"))
save("grey_alpha.png", Image.merge("LA", [image.convert("L"), Image.fromarray(alpha)]))
deep = rgb.astype(np.uint16) * 256 + 255 - rgb
write_png("deep.png", deep, 16, 2)
# Pillow cuts 16-bit grey off at 255; we keep the upper byte, as it does for colours.
write_png("deep_grey.png", deep[..., :1], 16, 0, pixels=np.repeat(rgb[..., :1], 3, -1))
write_png("interlaced.png", rgb, 8, 2, interlace=True)
write_png("interlaced_deep.png", np.concatenate([deep, deep[..., :1]], -1), 16, 6, interlace=True)
for depth in (1, 2, 4):
    write_png(f"grey{depth}.png", (grey >> (8 - depth))[..., None], depth, 0, interlace=depth == 2)
save("lossless.webp", image, lossless=True)
save("lossless_alpha.webp", Image.fromarray(wide, "RGBA"), lossless=True, exact=True)
save("lossy.webp", image, quality=80)
save("lossy_alpha.webp", Image.fromarray(wide, "RGBA"), quality=70, alpha_quality=60, icc_profile=b"x" * 40)
save("turned6.webp", image, lossless=True, exif=exif)
animation = [Image.fromarray(np.roll(rgb, 5 * i, 0)) for i in range(3)]
save("animated.png", animation[0], save_all=True, append_images=animation[1:])
save("animated.webp", animation[0], save_all=True, append_images=animation[1:], lossless=True)
# Of a first frame that is smaller than its picture the rest has no colour.
spot = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
spot[4:10, 6:15] = wide[4:10, 6:15] | [0, 0, 0, 1]
spots = [Image.fromarray(np.roll(spot, 3 * i, 0), "RGBA") for i in range(2)]
save("animated_spot.webp", spots[0], save_all=True, append_images=spots[1:], lossless=True)

# After each change: torchvision's names, with magnitudes that change much.
CHANGES = [("Identity", 0), ("ShearX", 0.31), ("ShearY", -0.4), ("TranslateX", 5.7), ("TranslateY", -3.2), ("Rotate", 31), ("Brightness", -0.3),
           ("Color", 0.6), ("Contrast", 0.45), ("Sharpness", 0.8), ("Posterize", 3), ("Solarize", 0.5), ("AutoContrast", 0), ("Equalize", 0)]
tensor = torch.from_numpy(rgb).permute(2, 0, 1)
transform = v2.RandAugment()
changed = [transform._apply_image_or_video_transform(tensor, name, magnitude, "nearest", {}) for name, magnitude in CHANGES]
changed.append(v2.functional.adjust_hue(tensor, 0.2))
(here / "changes.rgb").write_bytes(b"".join(after.permute(1, 2, 0).contiguous().numpy().tobytes() for after in changed))
