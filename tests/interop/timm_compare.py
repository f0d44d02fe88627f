"""Holds models of timm against what Plimsoll makes of their directories.

    python timm_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Each architecture with random weights, its state_dict saved as timm's hub directories have it: the logits that `predict` writes
are timm's, and so are transformers' logits of the final/ that a step with learning rate 0 leaves. One line per check.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import safetensors.torch  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

from checks import Checks  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TOLERANCE = 1e-4
CLASSES, IMAGES = 3, 3
MEAN = STD = [0.5, 0.5, 0.5]
ARCHITECTURES = ["resnet18", "resnet50", "convnext_tiny", "vit_tiny_patch16_224", "vit_small_patch32_224", "deit_tiny_patch16_224"]


def write_model(name, folder):
    torch.manual_seed(len(name))
    model = timm.create_model(name, num_classes=CLASSES).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape))
        for key, buffer in model.named_buffers():
            if buffer.dtype == torch.float32:
                buffer.add_(0.2 * torch.rand(buffer.shape))
    folder.mkdir(parents=True)
    safetensors.torch.save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    size = model.pretrained_cfg["input_size"]
    (folder / "config.json").write_text(json.dumps({
        "architecture": name, "num_classes": CLASSES, "num_features": model.num_features, "global_pool": model.global_pool
        if isinstance(getattr(model, "global_pool", None), str) else "avg", "label_names": [f"class {i}" for i in range(CLASSES)],
        "pretrained_cfg": {"input_size": list(size), "fixed_input_size": False, "interpolation": "bicubic", "crop_pct": 1.0,
                           "crop_mode": "center", "mean": MEAN, "std": STD, "num_classes": CLASSES}}))
    return model, size[-1]


def write_images(folder, side):
    rng = numpy.random.default_rng(side)
    pixels = []
    for number in range(IMAGES):
        picture = rng.integers(0, 256, (side, side, 3), dtype=numpy.uint8)
        place = folder / f"class {number}"
        place.mkdir(parents=True)
        PIL.Image.fromarray(picture).save(place / "a.png")
        pixels.append(picture)
    values = (numpy.stack(pixels).astype(numpy.float64) / 255 - MEAN) / STD
    return torch.tensor(values.transpose(0, 3, 1, 2), dtype=torch.float32)


def plimsoll(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}")
    return done.stdout


def compare(name, binary, folder, checks):
    model, side = write_model(name, folder / "model")
    pixels = write_images(folder / "images", side)
    with torch.no_grad():
        theirs = model(pixels).numpy()
    lines = plimsoll(binary, "predict", "--model", folder / "model", "--data", folder / "images").splitlines()
    ours = numpy.array([json.loads(line)["logits"] for line in lines])
    scale = max(1.0, float(numpy.abs(theirs).max()))
    checks.worst(name, "logits", [(float(numpy.abs(ours - theirs).max()) / scale, TOLERANCE, "predict")])
    how = {"norm_statistics": "frozen"} if name.startswith("resnet") else {}
    (folder / "run.yaml").write_text(json.dumps({
        "task": "image_classification", "model": {"path": str(folder / "model"), **how},
        "data": {"train": str(folder / "images")}, "output": {"dir": str(folder / "out"), "dtype": "fp32"},
        "training": {"global_batch_size": IMAGES, "max_steps": 1, "optimizer": "sgd", "learning_rate": 0.0, "weight_decay": 0.0}}))
    plimsoll(binary, "train", folder / "run.yaml")
    opened = transformers.AutoModelForImageClassification.from_pretrained(folder / "out" / "final").float().eval()
    with torch.no_grad():
        final = opened(pixel_values=pixels).logits.numpy()
    checks.worst(name, "final's logits", [(float(numpy.abs(final - theirs).max()) / scale, TOLERANCE, "transformers")])
    plimsoll(binary, "export", "--model", folder / "out" / "final", "--format", "timm", "--output", folder / "back")
    back = timm.create_model(f"local-dir:{folder / 'back'}", pretrained=True).eval()
    settings = timm.data.resolve_model_data_config(back)
    transform = timm.data.create_transform(**settings)
    read = torch.stack([transform(PIL.Image.open(folder / "images" / f"class {i}" / "a.png")) for i in range(IMAGES)])
    with torch.no_grad():
        again = back(read).numpy()
    checks.worst(name, "exported logits", [(float(numpy.abs(again - theirs).max()) / scale, TOLERANCE, "timm")])


def compare_dinov2(binary, folder, checks):
    """A backbone without a head: the features that the head of a run reads are timm's."""
    name = "vit_small_patch14_dinov2"
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=0, img_size=70).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape))
    folder.mkdir(parents=True)
    safetensors.torch.save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({
        "architecture": name, "num_classes": 0, "global_pool": "token",
        "pretrained_cfg": {"input_size": [3, 70, 70], "interpolation": "bicubic", "crop_pct": 1.0, "mean": MEAN, "std": STD}}))
    pixels = write_images(folder / "images", 70)
    (folder / "run.yaml").write_text(json.dumps({
        "task": "image_classification", "model": {"path": str(folder), "overrides": {"image_size": 70}},
        "data": {"train": str(folder / "images")}, "output": {"dir": str(folder / "out"), "dtype": "fp32"},
        "training": {"global_batch_size": IMAGES, "max_steps": 1, "optimizer": "sgd", "learning_rate": 0.0, "weight_decay": 0.0}}))
    plimsoll(binary, "train", folder / "run.yaml")
    opened = transformers.AutoModelForImageClassification.from_pretrained(folder / "out" / "final").float().eval()
    with torch.no_grad():
        theirs = model.forward_features(pixels).numpy()
        ours = opened.base_model(pixels).last_hidden_state.numpy()
    checks.worst(name, "features", [(float(numpy.abs(ours - theirs).max() / max(1.0, numpy.abs(theirs).max())), TOLERANCE, "transformers")])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    args = parser.parse_args()
    chosen = [name for name in ARCHITECTURES if args.only in name]
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(args.keep or scratch).resolve()
        for name in chosen:
            try:
                compare(name, os.path.abspath(args.binary), root / name, checks)
            except (RuntimeError, ValueError, OSError, KeyError, subprocess.TimeoutExpired) as failure:
                checks.check(name, "ran", False, f"{type(failure).__name__}: {failure}")
        if args.only in "vit_small_patch14_dinov2":
            try:
                compare_dinov2(os.path.abspath(args.binary), root / "dinov2", checks)
            except (RuntimeError, ValueError, OSError, KeyError, subprocess.TimeoutExpired) as failure:
                checks.check("dinov2", "ran", False, f"{type(failure).__name__}: {failure}")
    print(f"timm: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not checks.passed else 0


if __name__ == "__main__":
    sys.exit(main())
