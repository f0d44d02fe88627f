"""Holds training in a low precision against PyTorch's autocast and against the same model in fp64.

    python precision_compare.py --binary build/plimsoll [--only TEXT]

A step of small models from the same weights, its loss, logits and gradients dumped. Per tensor the distance to fp64 may be
1.25 times that of PyTorch's autocast and 2e-3 more; its median over the tensors may not exceed PyTorch's; no gradient may be
farther than 6e-2 from PyTorch's own. With a bf16 residual stream PyTorch's begins in bf16 as well: its embeddings are cast.
In tf32, which PyTorch has not on a CPU, the distance to fp64 is bounded alone.
"""
import argparse
import copy
import os
import pathlib
import statistics
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
import oracle  # noqa: E402
from checks import Checks  # noqa: E402

TIMES_PYTORCH, MARGIN, TO_PYTORCH = 1.25, 2e-3, 6e-2
TF32_LIMIT = 5e-3
LOSS_LIMIT = 2e-3

def wider(sample, **changes):
    """With rows that are whole vectors, and a vocabulary of 300."""
    sizes = dict(n_embd=96) if "n_embd" in sample else dict(hidden_size=96, intermediate_size=160)
    return sample | sizes | dict(vocab_size=300) | changes


MODELS = {name: wider(sample) for name, sample in cases.FAMILIES.items()} | {
    "llama": wider(cases.LLAMA, intermediate_size=200, num_hidden_layers=3),
    "llama, tied": wider(cases.LLAMA, intermediate_size=200, tie_word_embeddings=True),
    "mistral": wider(cases.MISTRAL),
}


# What a case is called, and its settings.
PRECISIONS = {
    "bf16": dict(precision="bf16"),
    "bf16 and a bf16 residual stream": dict(precision="bf16", residual_in_fp32=False),
    "fp16": dict(precision="fp16"),
    "tf32": dict(precision="tf32"),
}
LOSS_SCALE = 65536.0  # of fp16, ours and PyTorch's

# Where all is rounded, a gradient that nearly cancels (a key's bias, which softmax takes out but for the rotation) is
# noise that may swing either way in one run.
SEEDS = {"bf16 and a bf16 residual stream": [42, 1, 2]}


def autocast_gradients(model, ids, dtype, short_residual):
    for module in model.modules():
        if short_residual and isinstance(module, torch.nn.Embedding):
            module.register_forward_hook(lambda _module, _inputs, rows: rows.bfloat16())
    scale = LOSS_SCALE if dtype == torch.float16 else 1.0
    with torch.autocast("cpu", dtype=dtype):
        model.zero_grad(set_to_none=True)
        out = model(input_ids=ids, labels=ids)
    (out.loss * scale).backward()
    return out.loss.item(), {name: (p.grad.float() / scale).numpy() for name, p in model.named_parameters()}


def apart(tensors, reference):
    """Relative distance of each tensor, in its norm."""
    return {name: compare.difference(tensors[name], value) / max(compare.norm(value), 1e-30)
            for name, value in reference.items()}


def mean_over(runs):
    """Root mean square of each tensor's distance over several runs."""
    return {key: (sum(run[key] ** 2 for run in runs) / len(runs)) ** 0.5 for key in runs[0]}


def check_short(name, our_error, their_error, between, checks):
    checks.worst(name, "gradients, distance to fp64", [
        (value, TIMES_PYTORCH * their_error[key] + MARGIN, key) for key, value in our_error.items()])
    ratio = statistics.median(value / max(their_error[key], 1e-30) for key, value in our_error.items())
    checks.check(name, "median of the distance over PyTorch's", ratio <= 1.0, f"{ratio:.3f}")
    checks.worst(name, "gradients, distance to PyTorch's", [(value, TO_PYTORCH, key) for key, value in between.items()])


def run_once(case, label, binary, folder, checks):
    """A step, whose loss is checked: our gradients' distance to fp64, PyTorch's, and that between both."""
    compare.write_inputs(case, folder)
    events = compare.train(binary, folder)
    dump, initial = compare.dump_of(folder, 1), compare.dump_of(folder, 0)["parameters"]
    ids = oracle.batch_of(case, compare.rows_of(case), 1)
    model = oracle.build(folder / "model", initial)
    exact_loss, _, exact = oracle.loss_and_gradients(copy.deepcopy(model).double(), ids)
    checks.worst(label, "loss", [compare.relative(events[0]["loss"], exact_loss, LOSS_LIMIT, "step 1")])
    ours, settings = dump["gradients"], case["settings"]
    if settings["precision"] == "tf32":
        return [apart(ours, exact)]
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[settings["precision"]]
    _, theirs = autocast_gradients(model, ids, dtype, not settings.get("residual_in_fp32", True))
    return [apart(ours, exact), apart(theirs, exact), apart(ours, theirs)]


def compare_model(name, config, precision, binary, folder, checks):
    label = f"{name}, {precision}"
    settings = dict(PRECISIONS[precision])
    runs = [run_once(cases.case(name, config, 2, 70, max_steps=1, **settings | dict(seed=seed)), label, binary,
                     folder / str(seed), checks) for seed in SEEDS.get(precision, [42])]
    distances = [mean_over(kind) for kind in zip(*runs)]
    if settings["precision"] == "tf32":
        checks.worst(label, "gradients, distance to fp64", [(value, TF32_LIMIT, key) for key, value in distances[0].items()])
    else:
        check_short(label, *distances, checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    checks = Checks()
    chosen = [(name, precision) for name in MODELS for precision in PRECISIONS if args.only in f"{name}, {precision}"]
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, precision) in enumerate(chosen):
            compare_model(name, MODELS[name], precision, os.path.abspath(args.binary),
                          pathlib.Path(scratch).resolve() / f"{number:02d}", checks)
    print(f"precision: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
