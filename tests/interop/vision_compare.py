"""Holds classification of images against transformers' …ForImageClassification.

    python vision_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Every image family from a directory that transformers wrote, on a folder of PNG files: ten steps, each dumped. Per step, from the
parameters and buffers that Plimsoll had before it, loss, logits, each gradient and the running values are transformers' own.
Then final/ as transformers opens it. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import safetensors.numpy  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import transformers.optimization  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
from checks import Checks  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

CLASSIFIER = transformers.AutoModelForImageClassification
LOSS_TOLERANCE, LOGITS_TOLERANCE, GRADIENT_TOLERANCE, RUNNING_TOLERANCE, UPDATE_TOLERANCE = 1e-5, 1e-4, 2e-4, 1e-6, 1e-6
BATCH, CLASSES, STEPS, SIDE = 6, 5, 10, 35
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TRAINING = dict(max_steps=STEPS, precision="fp32", optimizer="sgd", momentum=0.9, learning_rate=0.01, lr_scheduler="constant",
                warmup_steps=0, weight_decay=0.0, max_grad_norm=0, seed=42)


def case(name, family, side=SIDE, settings=None, **config):
    return dict(name=name, config=cases.IMAGE_FAMILIES[family] | config, side=side, settings=settings or {})


CASES = [
    case("vit", "vit"),
    case("vit, no biases of queries", "vit", qkv_bias=False),
    case("vit, micro-batches of two", "vit", settings=dict(micro_batch_size=2)),
    case("vit, tanh, one head, recomputed", "vit", hidden_act="gelu_new", num_attention_heads=1, settings=dict(recompute="full")),
    case("vit, images of another size", "vit", side=49, interpolate_pos_encoding=True, settings=dict(micro_batch_size=2)),
    case("dinov2", "dinov2"),
    case("dinov2, gated, micro-batches of three", "dinov2", use_swiglu_ffn=True, layerscale_value=1.0, settings=dict(micro_batch_size=3)),
    case("dinov2, images of another size", "dinov2", side=49, settings=dict(micro_batch_size=2)),
    case("convnext", "convnext"),
    case("convnext, no scale, micro-batches of two", "convnext", layer_scale_init_value=0.0, settings=dict(micro_batch_size=2)),
    case("resnet, bottleneck", "resnet"),
    case("resnet, basic", "resnet", layer_type="basic"),
    case("resnet, stride in the first convolution", "resnet", downsample_in_bottleneck=True, downsample_in_first_stage=True),
    case("resnet, recomputed", "resnet", settings=dict(recompute="full")),
    case("resnet, adafactor", "resnet", settings=dict(optimizer="adafactor", learning_rate=0.0005)),
    case("vit, adafactor", "vit", settings=dict(optimizer="adafactor", learning_rate=0.0005)),
    case("convnext, adafactor", "convnext", settings=dict(optimizer="adafactor", learning_rate=0.0005)),
    case("resnet, frozen below the last stage", "resnet",
         settings=dict(freeze=["resnet.embedder.*", "resnet.encoder.stages.0.*"])),
]


def has_batch_norm(case):
    return case["config"]["model_type"] == "resnet"


def how_called(case):
    """What transformers wants to hear at each call, where Plimsoll reads it from config.json."""
    return {key: case["config"][key] for key in ("interpolate_pos_encoding",) if key in case["config"]}


def write_pictures(case, folder):
    """Class folders of PNG files, one batch in all. The order is that of sorted paths."""
    rng = numpy.random.default_rng(sum(map(ord, case["name"])))
    pixels, labels, side = [], [], case["side"]
    for number in range(BATCH):
        label = sorted(number % CLASSES for number in range(BATCH))[number]
        picture = rng.integers(0, 256, (side, side, 3), dtype=numpy.uint8)
        place = folder / f"class {label}"
        place.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(picture).save(place / f"{number:02d}.png")
        pixels.append(picture)
        labels.append(label)
    values = (numpy.stack(pixels).astype(numpy.float64) / 255 - MEAN) / STD
    return torch.tensor(values.transpose(0, 3, 1, 2), dtype=torch.float32), torch.tensor(labels)


def config_of(case):
    config = {key: value for key, value in case["config"].items() if key not in ("architectures", "num_labels")}
    config["id2label"] = {i: f"class {i}" for i in range(CLASSES)}
    config["label2id"] = {f"class {i}": i for i in range(CLASSES)}
    return transformers.CONFIG_MAPPING[config["model_type"]](**config)


def write_model(case, folder):
    torch.manual_seed(sum(map(ord, case["name"])))
    model = CLASSIFIER.from_config(config_of(case), attn_implementation="eager").float()
    for name, parameter in model.named_parameters():  # no zeros and no ones: every gradient says something
        with torch.no_grad():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    for name, buffer in model.named_buffers():
        if buffer.dtype == torch.float32:
            buffer.add_(0.2 * torch.rand(buffer.shape))
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(dict(
        image_processor_type="ViTImageProcessor", do_resize=False, do_rescale=True, rescale_factor=1 / 255, do_normalize=True,
        image_mean=MEAN, image_std=STD, size=dict(height=case["side"], width=case["side"]))))


def write_run(case, folder):
    settings = dict(case["settings"])
    recompute = settings.pop("recompute", "auto")
    training = {"global_batch_size": BATCH, **TRAINING, **settings}
    if training["optimizer"] != "sgd":
        del training["momentum"]
    dumped = ["loss", "gradients", "logits", "parameters"] + (["buffers"] if has_batch_norm(case) else [])
    run = {
        "task": "image_classification",
        "model": {"path": str(folder / "model")},
        "data": {"train": str(folder / "pictures"), "shuffle": False, "images": {"resize": "none", "size": case["side"]}},
        "training": training,
        "memory": {"recompute": recompute},
        "runtime": {"device": "cpu", "threads": 2},
        "output": {"dir": str(folder / "out"), "dtype": "fp32"},
        "debug": {"dump_dir": str(folder / "dump"), "dump": dumped},
    }
    (folder / "run.yaml").write_text(json.dumps(run))


def train(binary, folder):
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), "--json"], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event["event"] == "step"]


def as_on_disk(model):
    """Its tensors by the names of files: what transformers writes."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        return safetensors.torch.load_file(pathlib.Path(scratch) / "model.safetensors")


class Oracle:
    """transformers' model, filled by the names on disk."""

    def __init__(self, folder, frozen_statistics, how):
        self.folder, self.how = folder, how
        self.start = safetensors.torch.load_file(folder / "model.safetensors")
        self.frozen = frozen_statistics

    def opened(self, tensors):
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copy(self.folder / "config.json", scratch)
            known = self.start | {name: torch.tensor(value) for name, value in tensors.items()}
            safetensors.torch.save_file(known, pathlib.Path(scratch) / "model.safetensors", metadata={"format": "pt"})
            return CLASSIFIER.from_pretrained(scratch, attn_implementation="eager").float()

    def step(self, tensors, pixels, labels):
        model = self.opened(tensors).train()
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.BatchNorm2d) and self.frozen(name):
                module.eval()
        out = model(pixel_values=pixels, labels=labels, **self.how)
        out.loss.backward()
        buffers = {name: value for name, value in as_on_disk(model).items() if "running_" in name}
        missing = {name for name, p in model.named_parameters() if p.grad is None}
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.zeros_like(parameter) if name in missing else parameter.grad)
        gradients = {name: value.numpy() for name, value in as_on_disk(model).items()
                     if "running_" not in name and "num_batches" not in name and "mask_token" not in name}
        return out.loss.item(), gradients, {name: value.numpy() for name, value in buffers.items()}

    def logits(self, tensors, pixels):
        with torch.no_grad():
            return self.opened(tensors).eval()(pixel_values=pixels, **self.how).logits.numpy()


def measures(ours, theirs, tolerance, step):
    floor = 1e-6 * float(numpy.sqrt(sum(float((value.astype(numpy.float64) ** 2).sum()) for value in theirs.values())))
    for name, reference in theirs.items():
        label = f"step {step} {name}"
        if name not in ours or ours[name].shape != reference.shape:
            yield float("inf"), 1.0, f"{label} absent or of another shape"
        else:
            yield compare.difference(ours[name], reference), tolerance * compare.norm(reference) + floor, label
    for name in ours.keys() - theirs.keys():
        yield float("inf"), 1.0, f"step {step} {name} is unknown to transformers"


class Adafactor:
    """transformers' optimizer; its parameters and gradients are Plimsoll's."""

    def __init__(self, start, rate):
        self.parameters = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start.items()}
        self.optimizer = transformers.optimization.Adafactor(self.parameters.values(), lr=rate, scale_parameter=False,
                                                             relative_step=False)

    def step(self, before, gradients):
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(torch.tensor(before[name]))
                parameter.grad = torch.tensor(gradients[name])
        self.optimizer.step()
        return {name: parameter.detach().numpy() for name, parameter in self.parameters.items()}


def dump_of(folder, step):
    tensors = safetensors.numpy.load_file(folder / "dump" / f"step-{step:06d}.safetensors")

    def under(prefix):
        return {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}
    return dict(loss=tensors.get("loss"), logits=tensors.get("logits"), gradients=under("grad."), parameters=under("param."),
                buffers=under("buffer."))


def frozen_names(case):
    patterns = case["settings"].get("freeze", [])
    return lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def compare_case(case, binary, folder, checks):
    folder.mkdir(parents=True)
    name, frozen = case["name"], frozen_names(case)
    write_model(case, folder / "model")
    pixels, labels = write_pictures(case, folder / "pictures")
    write_run(case, folder)
    events = train(binary, folder)
    checks.check(name, "steps", len(events) == STEPS, f"{len(events)} of {STEPS}")
    oracle = Oracle(folder / "model", lambda module: frozen(module + ".weight"), how_called(case))
    before, losses, logits, gradients, running = dump_of(folder, 0), [], [], [], []
    checks.worst(name, "weights as they were read", list(measures(
        before["parameters"], {key: value.numpy() for key, value in oracle.start.items() if key in before["parameters"]}, 0, 0)))
    settings = case["settings"]
    adafactor = Adafactor(before["parameters"], settings["learning_rate"]) if settings.get("optimizer") == "adafactor" else None
    updates = []
    for step in range(1, STEPS + 1):
        dump = dump_of(folder, step)
        if adafactor:
            after = adafactor.step(before["parameters"], dump["gradients"])
            updates.extend(measures(dump["parameters"], after, UPDATE_TOLERANCE, step))
        state = before["parameters"] | before["buffers"]
        loss, reference, buffers = oracle.step(state, pixels, labels)
        losses.append(compare.relative(dump["loss"][0], loss, LOSS_TOLERANCE, f"step {step}"))
        reference = {key: value for key, value in reference.items() if not frozen(key)}
        gradients.extend(measures(dump["gradients"], reference, GRADIENT_TOLERANCE, step))
        if dump["buffers"]:
            ours = {key: value for key, value in dump["buffers"].items() if "running_" in key}
            running.extend(measures(ours, buffers, RUNNING_TOLERANCE, step))
        if not has_batch_norm(case):
            logits.extend(measures({"logits": dump["logits"]}, {"logits": oracle.logits(state, pixels)}, LOGITS_TOLERANCE, step))
        before = dump
    checks.worst(name, "loss", losses)
    checks.worst(name, "gradients", gradients)
    if updates:
        checks.worst(name, "parameters after the update", updates)
    if logits:
        checks.worst(name, "logits", logits)
    if has_batch_norm(case):
        checks.worst(name, "running values", running)
    check_final(case, folder, oracle, before, pixels, checks)


def check_final(case, folder, oracle, last, pixels, checks):
    """final/ opens in transformers as it is, with all tensors, and its logits are those of the last parameters."""
    final = folder / "out" / "final"
    opened, report = CLASSIFIER.from_pretrained(final, output_loading_info=True, attn_implementation="eager")
    wrong = [key for key in report["missing_keys"] | report["unexpected_keys"] | set(report["mismatched_keys"])
             if "mask_token" not in key]
    checks.check(case["name"], "final opens", not wrong, f"{wrong[:3] or 'all tensors'}")
    with torch.no_grad():
        ours = opened.float().eval()(pixel_values=pixels, **oracle.how).logits.numpy()
    theirs = oracle.logits(last["parameters"] | last["buffers"], pixels)
    checks.check(case["name"], "final's logits", numpy.array_equal(ours, theirs), f"{numpy.abs(ours - theirs).max():.2e} apart")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    args = parser.parse_args()
    chosen = [case for case in CASES if args.only in case["name"]]
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(args.keep or scratch).resolve()
        for number, case in enumerate(chosen):
            try:
                compare_case(case, os.path.abspath(args.binary), root / f"{number:02d}", checks)
            except (RuntimeError, ValueError, OSError, KeyError, subprocess.TimeoutExpired) as failure:
                checks.check(case["name"], "ran", False, f"{type(failure).__name__}: {failure}")
    print(f"vision: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
