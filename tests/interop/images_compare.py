"""Holds pictures' pixels against Pillow, transformers' image processors and torchvision.

    python images_compare.py --build build [--pictures FOLDER] [--most 2000] [--speed]

Decoding, orientation, transparency, resizing and cropping of pictures made here (every mode, many sizes, qualities,
subsamplings, progressive and interlaced), and with --pictures of those in a folder: bit for bit with Pillow and
transformers' Pillow backend, within one level of its torchvision backend. Augmentations with given parameters against
torchvision's functions. --speed compares the time of a random resized crop with torchvision's over Pillow, in this
run. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
from PIL import Image, ImageOps
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

from checks import Checks
from driver import build_driver

warnings.filterwarnings("ignore")
Image.MAX_IMAGE_PIXELS = None
EXIF_ORIENTATION = 0x0112


def smooth(rng, height, width, channels):
    """A picture with edges and slopes, as photographs have."""
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.02, 0.3, 3)
        plane = 127 + 60 * np.sin(a * x + b * y) + 60 * ((x * c).astype(int) % 2) + rng.normal(0, 8, (height, width))
        planes.append(np.clip(plane, 0, 255))
    return np.stack(planes, -1).astype(np.uint8)


def made_pictures(folder, rng):
    """Pictures of every kind; returns their paths."""
    folder.mkdir()
    sizes = [(1, 1), (1, 300), (300, 1), (7, 5), (16, 16), (33, 47), (224, 224), (225, 223), (375, 500), (500, 375), (640, 97), (97, 640)]
    for height, width in sizes:
        rgb = Image.fromarray(smooth(rng, height, width, 3))
        name = f"{height}x{width}"
        for sampling in (0, 1, 2):
            for quality in (30, 95):
                rgb.save(folder / f"{name}-{sampling}-{quality}.jpg", quality=quality, subsampling=sampling)
        rgb.save(folder / f"{name}-progressive.jpg", progressive=True, quality=85)
        rgb.save(folder / f"{name}-optimized.jpg", optimize=True, restart_marker_blocks=3)
        rgb.convert("L").save(folder / f"{name}-grey.jpg")
        rgb.convert("CMYK").save(folder / f"{name}-cmyk.jpg")
        rgb.save(folder / f"{name}.png")
        rgb.convert("L").save(folder / f"{name}-l.png")
        rgb.convert("1").save(folder / f"{name}-1.png")
        rgb.quantize(13).save(folder / f"{name}-p4.png")
        rgb.quantize(200).save(folder / f"{name}-p8.png", transparency=3)
        rgba = Image.fromarray(smooth(rng, height, width, 4), "RGBA")
        rgba.save(folder / f"{name}-rgba.png")
        rgba.convert("LA").save(folder / f"{name}-la.png")
        for method in (0, 6):
            rgb.save(folder / f"{name}-lossless{method}.webp", lossless=True, method=method)
            rgba.save(folder / f"{name}-alpha{method}.webp", quality=40 + 10 * method, method=method)
        rgb.quantize(13).convert("RGB").save(folder / f"{name}-few.webp", lossless=True)
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[EXIF_ORIENTATION] = orientation
            rgb.save(folder / f"{name}-exif{orientation}.jpg", exif=exif, quality=90)
            rgb.save(folder / f"{name}-exif{orientation}.png", exif=exif)
            rgb.save(folder / f"{name}-exif{orientation}.webp", exif=exif, quality=85)
    return sorted(folder.iterdir())


class Loader:
    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def __call__(self, processor, paths, *arguments):
        """The pixels of each picture, or the text of its error."""
        file = self.folder / "preprocessor_config.json"
        file.write_text(json.dumps(processor))
        text = "".join(f"{path}\n" for path in paths)
        output = subprocess.run([self.driver, "load", file, *arguments], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
        at, answers = 0, []
        for _ in paths:
            ok, size = struct.unpack_from("<BI", output, at)
            data = output[at + 5:at + 5 + size]
            answers.append(np.frombuffer(data, np.uint8) if ok else data.decode())
            at += 5 + size
        return answers


def opened(path, alpha="drop", orientation="exif"):
    image = Image.open(path)
    if orientation == "exif":
        image = ImageOps.exif_transpose(image)
    if alpha == "white":
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, (255, 255, 255))
        white.paste(image, mask=image.getchannel("A"))
        return white
    image = image.convert("RGB")
    image.info.pop("transparency", None)  # or transformers takes it for transparent still
    return image


def differences(answers, expected):
    """Pictures that differ and the largest difference, over all."""
    wrong, most = 0, 0
    for answer, pixels in zip(answers, expected):
        if isinstance(answer, str) or answer.size != pixels.size:
            print(answer if isinstance(answer, str) else f"{answer.size} bytes for {pixels.size}")
            return len(answers), 255
        difference = int(np.abs(answer.astype(int) - pixels.reshape(-1).astype(int)).max())
        wrong, most = wrong + (difference > 0), max(most, difference)
    return wrong, most


VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 64, "width": 80}, "do_normalize": False, "do_rescale": False}
BIT = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 73}, "crop_size": {"height": 64, "width": 70},
       "do_normalize": False, "do_rescale": False}
CONVNEXT = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 65}, "crop_pct": 0.875, "do_normalize": False,
            "do_rescale": False}
LARGE = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}, "do_normalize": False, "do_rescale": False}
RESAMPLE = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3}


def processed(processor, image, backend):
    from transformers import AutoImageProcessor
    key = (json.dumps(processor), backend)
    if key not in processed.made:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "preprocessor_config.json").write_text(key[0])
            processed.made[key] = AutoImageProcessor.from_pretrained(folder, backend=backend)
    pixels = processed.made[key](image, return_tensors="np")["pixel_values"][0]
    return np.moveaxis(np.asarray(pixels), 0, -1)


processed.made = {}


def usable(paths):
    """Whole pictures that Pillow opens and that we read."""
    good = []
    for path in paths:
        try:
            image = Image.open(path)
            image.load()
        except OSError:
            continue
        if image.format in ("JPEG", "PNG") and not image.mode.startswith("I") and min(image.size) * 4000 > max(image.size):
            good.append(path)
    return good


def compare_processors(checks, load, paths):
    for name, processor in {"vit": VIT, "bit": BIT, "convnext": CONVNEXT, "convnext384": LARGE}.items():
        some = paths if name != "convnext384" else paths[::7]
        for word, code in RESAMPLE.items():
            processor = {**processor, "resample": code}
            expected = [processed(processor, opened(path), "pil") for path in some]
            wrong, most = differences(load(processor, some), expected)
            checks.check("images", f"{name} {word}: Pillow's pixels", wrong == 0, f"{len(some)} pictures, {wrong} differ, by {most} at most")
            near = some[::3]
            expected = [processed(processor, opened(path), "torchvision") for path in near]
            wrong, most = differences(load(processor, near, "torch"), expected)
            checks.check("images", f"{name} {word}: within one level of torchvision's", most <= 1, f"{len(near)} pictures, {wrong} differ, by {most} at most")


def compare_decoding(checks, load, paths):
    """Without resizing: what is decoded, and what becomes of orientation and transparency."""
    by_size = {}
    for path in paths:
        by_size.setdefault(opened(path).size, []).append(path)
    for arguments in ((), ("white",), ("ignore",)):
        total, wrong, most = 0, 0, 0
        for path in paths:
            how = {"alpha": "white"} if arguments == ("white",) else {"orientation": "ignore"} if arguments == ("ignore",) else {}
            image = opened(path, **how)
            if max(image.size) > 2000:
                continue
            processor = {**VIT, "do_resize": False, "size": {"height": image.size[1], "width": image.size[0]}}
            w, m = differences(load(processor, [path], *arguments), [np.asarray(image)])
            total, wrong, most = total + 1, wrong + w, max(most, m)
            if w and wrong < 4:
                print(f"{path} differs by {m}")
        checks.check("images", f"decoded {' '.join(arguments) or 'as they are'}", wrong == 0, f"{total} pictures, {wrong} differ, by {most} at most")


def compare_written(checks, driver, folder, paths):
    """The processor file that a run leaves makes transformers give the same pixels."""
    for name, processor in {"vit": VIT, "bit": BIT, "convnext": CONVNEXT, "convnext384": LARGE}.items():
        file = folder / "preprocessor_config.json"
        file.write_text(json.dumps({**processor, "do_rescale": True, "do_normalize": True}))
        written = json.loads(subprocess.run([driver, "json", file], stdout=subprocess.PIPE, check=True).stdout)
        most = 0.0
        for path in paths[::23]:
            for backend in ("pil", "torchvision"):
                pixels = processed(json.loads(file.read_text()), opened(path), backend)
                most = max(most, float(np.abs(processed(written, opened(path), backend) - pixels).max()))
        checks.check("images", f"{name}: the processor file that is written", most == 0, f"pixels differ by {most} at most")


def changed(driver, name, pixels, *arguments):
    height, width = pixels.shape[:2]
    output = subprocess.run([driver, *name, *arguments, str(height), str(width)], input=pixels.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(output, np.uint8).reshape(pixels.shape)


CHANGES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness",
           "Posterize", "Solarize", "AutoContrast", "Equalize"]


def compare_changes(checks, driver, rng):
    transform = v2.RandAugment()
    magnitudes = {"Posterize": [0, 1, 4, 8], "Solarize": [0, 0.3, 1], "TranslateX": [13.7, -32], "TranslateY": [5.2, -90],
                  "Rotate": [17.3, -93.1, 135]}
    for number, change in enumerate(CHANGES):
        for magnitude in magnitudes.get(change, [-0.9, 0.31, 0.87]):
            pixels = smooth(rng, 57, 91, 3)
            image = torch.from_numpy(pixels).permute(2, 0, 1)
            expected = transform._apply_image_or_video_transform(image, change, magnitude, "nearest", {}).permute(1, 2, 0).numpy()
            difference = np.abs(changed(driver, ["change", str(number)], pixels, str(magnitude)).astype(int) - expected)
            moved = change in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
            # Where two neighbours are equally near, a rounding of the last bit decides between pixels.
            good = (difference.max(-1) > 0).mean() < 1e-3 if moved else difference.max() <= 1 and (difference > 0).mean() < 2e-3
            checks.check("images", f"{change} {magnitude}", bool(good), f"{(difference > 0).mean():.2e} of the bytes differ, by {difference.max()} at most")
    for shift in (-0.5, -0.11, 0.07, 0.43):
        pixels = smooth(rng, 57, 91, 3)
        expected = F.adjust_hue(torch.from_numpy(pixels).permute(2, 0, 1), shift).permute(1, 2, 0).numpy()
        difference = np.abs(changed(driver, ["hue", str(shift)], pixels).astype(int) - expected)
        checks.check("images", f"hue {shift}", bool(difference.max() <= 1), f"{(difference > 0).mean():.2e} of the bytes differ, by {difference.max()} at most")


def compare_speed(checks, driver, folder, rng):
    """Seconds of one thread for random resized crops of 500 x 375 JPEGs."""
    paths = []
    for i in range(200):
        path = folder / f"speed{i}.jpg"
        Image.fromarray(smooth(rng, 375, 500, 3)).save(path, quality=90)
        paths.append(path)
    torch.set_num_threads(1)
    transform = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    (folder / "speed.json").write_text(json.dumps({"size": 224}))
    text = "".join(f"{path}\n" for path in paths).encode()
    ours, theirs = [], []
    for _ in range(3):
        command = [driver, "seconds", folder / "speed.json", '["random_resized_crop", "flip"]', "1", "0"]
        ours.append(float(subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True).stdout))
        start = time.thread_time()
        for path in paths:
            transform(Image.open(path).convert("RGB"))
        theirs.append(time.thread_time() - start)
    ratio = sorted(theirs)[1] / sorted(ours)[1]
    checks.check("images", "speed", ratio >= 2, f"{len(paths) / sorted(ours)[1]:.0f} pictures/s, {ratio:.2f} x torchvision over Pillow")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    checks, rng = Checks(), np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        driver = build_driver(args.build, "images_driver.cpp", folder, ("images", "io", "base"), ["-ljpeg", "-lspng", f"{args.build}/libplimsoll_webp.a", "-lhwy"])
        load = Loader(driver, folder)
        if args.pictures:
            found = [path for path in sorted(args.pictures.rglob("*")) if path.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp") and path.is_file()]
            paths = usable(found[::max(1, len(found) // args.most)])
        else:
            paths = made_pictures(folder / "pictures", rng)
        compare_decoding(checks, load, paths)
        compare_processors(checks, load, paths)
        if not args.pictures:
            compare_written(checks, driver, folder, paths)
            compare_changes(checks, driver, rng)
        if args.speed:
            compare_speed(checks, driver, folder, rng)
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
