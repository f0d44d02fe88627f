#!/usr/bin/env python3
"""Random trainings on a card, against the same trainings on the CPU.

    card_combinations.py [--binary build/plimsoll] [--card build/tests/fake-card] [--count 200] [--seed 1] [--only N] [--keep DIR]

--card: the folder of the card's libraries (docs/card-tests.md); "": a real card. Each combination is trained three times: on the CPU;
on the card, with everything kept; on the card in a random way (what is computed again, offload to the host, second backward, poison,
another order of the queues). On the card both ways have the same bits in losses, norms and weights, unless the host updates; they agree
with the CPU within the rounding of the precision; the driver's count of the card's memory is the planned one, the process stays within
its plan, and nothing is allocated behind the first step. What is trained: model (text of five families, labels of them, images of two),
precision, states, optimizer, packing, all of it or adapters beside a base in 16 or few bits.
Prints a line a failure and a summary; exits with 1 where anything failed. PLIMSOLL_WHOLE_CAMPAIGN: 200.
"""
import argparse
import array
import json
import math
import os
import pathlib
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile

import combinations
from combinations import MODELS, language_task, lora_of, numbers, run_training, write_data

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from png_file import png  # noqa: E402

VIT = ("{model_type: vit, architectures: [ViTForImageClassification], image_size: 16, patch_size: 4, hidden_size: 24, "
       "num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 40}")
RESNET = ("{model_type: resnet, architectures: [ResNetForImageClassification], embedding_size: 8, hidden_sizes: [16, 32], "
          "depths: [1, 2], layer_type: basic}")
IMAGES = {"vit": VIT, "resnet": RESNET}
# The settings, and how far losses and norms may be from the CPU's (relative), and weights (of the root of their mean square).
PRECISION = [("fp32", 1e-4, 2e-3), ("tf32", 3e-3, 1e-2), ("bf16", 3e-2, 5e-2), ("fp16", 5e-3, 2e-2),
             ("bf16 training.residual_in_fp32=false", 3e-2, 5e-2),
             ("bf16 training.state.weights=bf16 training.state.gradients=bf16", 3e-2, 5e-2),
             ("bf16 training.state.accumulators=bf16", 3e-2, 5e-2), ("fp32 training.state.moments=bf16", 1e-3, 2e-2)]
PRECISION += [(f"fp8 training.fp8.recipe={recipe}", 1e-1, 1e-1) for recipe in ("delayed", "current", "block", "mxfp8", "nvfp4")]


# Attention does not change with the keys' bias: its gradient is rounding alone, whose sign Adam follows.
NOISE = re.compile(r"(c_attn|k_proj|attention\.(self\.)?key)\.(.*\.)?bias$")


def write_images(folder, dice):
    """Red and blue pictures of many sizes."""
    for colour in range(2):
        place = folder / "train" / ("blue", "red")[colour]
        place.mkdir(parents=True, exist_ok=True)
        for i in range(20):
            wide, high = dice.randint(9, 40), dice.randint(9, 40)
            shade, low = dice.randint(120, 240), dice.randint(0, 80)
            pixel = bytes([shade, low, low] if colour else [low, low, shade])
            (place / f"{i}.png").write_bytes(png(wide, high, pixel * (wide * high), 3))


def run_file(name, task):
    if name in IMAGES:
        return (f"model: {{config: {IMAGES[name]}, init: random}}\ndata: {{train: train}}\n"
                "training: {global_batch_size: 8, max_steps: 3, learning_rate: 1.0e-3}\noutput: {dir: out}\n")
    text = combinations.run_file(MODELS[name][0], task).replace("sequence_length: 128", "sequence_length: 40")
    return text.replace("global_batch_size: 8, max_steps: 4", "global_batch_size: 4, max_steps: 3")


def what_of(dice, optimizers):
    """Name, task, settings, the two tolerances."""
    name = dice.choice([*MODELS, *MODELS, *IMAGES])
    precision, loss, weights = dice.choice(PRECISION)
    optimizer = dice.choice(optimizers)
    if "moments" in precision and not optimizer.startswith("adam"):
        optimizer = "adamw"
    if "moments" in precision and optimizer == "adamw_8bit":
        optimizer = "adamw"
    settings = [f"training.precision={precision}", f"training.optimizer={optimizer}",
                f"training.micro_batch_size={dice.choice([1, 2, 4])}"]
    if optimizer == "lion":
        settings.append("training.learning_rate=1.0e-4")
    if dice.random() < 0.5:
        settings.append("training.max_grad_norm=0")
    averages = dice.random() < 0.2 and "state.weights" not in precision
    if name in IMAGES:
        if averages:
            settings.append("training.ema_decay=0.9")
        if dice.random() < 0.5:
            settings.append('"data.images.augment=[flip, {color_jitter: {brightness: 0.4}}]"')
        batch_norm = 3 if name == "resnet" else 1  # divides by the spread of few images
        return name, "images", " ".join(settings), batch_norm * loss, batch_norm * weights
    task = "sequence_classification" if dice.random() < 0.2 else language_task(name)
    if dice.random() < 0.4:
        settings += [f"model.path=base-{name}", "model.init=pretrained", "model.config=null", *map(shlex.quote, lora_of(dice, name, task))]
        weights *= 4  # of few, small numbers
    elif averages:
        settings.append("training.ema_decay=0.9")
    if task != "sequence_classification":
        settings.append(f"data.packing={dice.choice(combinations.PACKING)}")
        if settings[-1].endswith("pad") and dice.random() < 0.5:
            settings.append("data.buckets=2")
    return name, task, " ".join(settings), loss, weights


def how_of(dice, name, settings):
    ways = ["auto", "none", "full", "selective"]
    if name in MODELS:
        ways += ["attention", "mlp", "segments", "{every: %d}" % dice.randint(1, MODELS[name][1])]
    how = ["memory.recompute=" + dice.choice(ways), f"runtime.threads={dice.randint(1, 3)}"]
    if dice.random() < 0.5:
        classes = dice.sample(["activations", "optimizer", "masters", "gradients", "parameters"], dice.randint(1, 4))
        how.append("memory.offload={%s}" % ", ".join(f"{c}: host" for c in classes))
        if "optimizer" in classes and dice.random() < 0.4:
            how.append("memory.update_on_host=true")
    if dice.random() < 0.2:
        how.append("debug.poison=true")
    if dice.random() < 0.2 and "fp16" not in settings and "micro_batch_size=4" in settings and name in MODELS:
        how.append("memory.optimizer_in_backward=true")
        if "max_grad_norm" not in settings:
            how.append("memory.second_backward=true")
    return how


def values(bytes_of, dtype):
    if dtype == "F32":
        return array.array("f", bytes_of)
    if dtype == "F16":
        return [x[0] for x in struct.iter_unpack("<e", bytes_of)]
    if dtype == "BF16":
        return array.array("f", b"".join(b"\0\0" + bytes_of[i:i + 2] for i in range(0, len(bytes_of), 2)))
    return array.array("b", bytes_of)


def tensors(file):
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: (t["dtype"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in head.items() if name != "__metadata__"}


def far_weights(card, cpu, tolerance):
    """The tensors that are farther apart than rounding brings them."""
    if card.keys() != cpu.keys():
        return [f"other tensors: {sorted(card.keys() ^ cpu.keys())[:3]}"]
    found = []
    for name, (dtype, data) in cpu.items():
        if NOISE.search(name):
            continue
        a, b = values(card[name][1], dtype), values(data, dtype)
        apart, size = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b))), math.sqrt(sum(y * y for y in b))
        # Biases begin at zero: all of them is what was learnt, and AdamW makes steps of what is rounding alone.
        wide = 6 * tolerance if name.endswith("bias") else tolerance
        if not apart <= wide * size + 1e-3 * tolerance * math.sqrt(len(b)):
            found.append(f"{name} is {apart / max(size, 1e-30):.2g} off")
    return found[:2]


def far_numbers(card, cpu, tolerance, with_norms):
    """The steps whose loss, or norm of the gradients, is farther away than rounding brings it."""
    found = []
    for ours, theirs in zip(numbers(card), numbers(cpu)):
        for a, b in zip(ours[1:3 if with_norms else 2], theirs[1:3 if with_norms else 2]):
            if b is not None and not abs(a - b) <= tolerance * abs(b) + 1e-6:
                found.append(f"step {ours[0]}: {a}, on the CPU {b}")
    return found[:2] if len(numbers(card)) == len(numbers(cpu)) else ["other steps"]


class Cards:
    """Trains, on the CPU or a card, and keeps what was trained."""

    def __init__(self, binary, folder, card):
        self.binary, self.folder, self.card = binary, folder, card

    def train(self, what, how, seed=None):
        name, task, settings = what[:3]
        environment = dict(os.environ)
        if seed is not None:
            how = [*how, "runtime.device=cuda"]
            if self.card:
                environment |= {"PLIMSOLL_CUDA_LIBRARIES": self.card, "PLIMSOLL_FAKE_CUDA_SEED": str(seed)}
        events, final = run_training(self.binary, self.folder, run_file(name, task), settings, how, environment)
        return events, tensors(final)


def memory_troubles(events):
    summary = next(e for e in events if e["event"] == "summary")
    found = []
    if summary["planned_peak_bytes"] != summary["measured_peak_bytes"]:
        found.append(f"planned {summary['planned_peak_bytes']}, measured {summary['measured_peak_bytes']}")
    if summary["host_measured_peak_bytes"] > summary["host_planned_peak_bytes"]:
        found.append(f"host: planned {summary['host_planned_peak_bytes']}, measured {summary['host_measured_peak_bytes']}")
    if summary["allocations_after_first_step"] != 0:
        found.append(f"{summary['allocations_after_first_step']} allocations")
    return found


def troubles(cards, what, how, seed):
    loss, weights = what[3:]
    # Gradients of few adapters beside a base of few values are the small difference of large numbers.
    with_norms = "lora=" not in what[2] or "precision=fp32" in what[2]
    cpu = cards.train(what, ["memory.recompute=none"])
    plain = cards.train(what, ["memory.recompute=none"], 1)
    other = cards.train(what, how, seed)
    found = far_numbers(plain[0], cpu[0], loss, with_norms) + far_weights(plain[1], cpu[1], weights)
    if "memory.update_on_host=true" in how:
        found += far_numbers(other[0], cpu[0], loss, with_norms) + far_weights(other[1], cpu[1], weights)
    else:
        if numbers(other[0]) != numbers(plain[0]):
            found.append("losses or norms differ")
        if other[1] != plain[1]:
            found.append("final weights differ")
    return found + memory_troubles(plain[0]) + memory_troubles(other[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--card", default="build/tests/fake-card")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the combination of this number alone")
    parser.add_argument("--keep", help="work in this folder and leave it")
    arguments = parser.parse_args()
    if os.environ.get("PLIMSOLL_WHOLE_CAMPAIGN"):
        arguments.count = max(arguments.count, 200)
    binary = str(pathlib.Path(arguments.binary).resolve())
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dice = random.Random(0)
        write_data(folder, dice)
        write_images(folder, dice)
        rules = combinations.optimizers(binary, folder)
        cards = Cards(binary, folder, arguments.card and str(pathlib.Path(arguments.card).resolve()))
        for name in MODELS:
            combinations.base_model(binary, folder, name)
        chosen = range(arguments.count) if arguments.only is None else [arguments.only]
        for number in chosen:
            dice = random.Random(f"{arguments.seed} {number}")
            what = what_of(dice, rules)
            how = how_of(dice, what[0], what[2])
            try:
                found = troubles(cards, what, how, dice.randrange(2, 1000))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                found = [str(error)]
            if found:
                failed += 1
                print(f"{number}: {' '.join(what[:3])} | {' '.join(how)}: {'; '.join(found)}", flush=True)
    print(f"{len(chosen)} combinations on a card ({', '.join(rules)}), {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
