"""Holds `plimsoll train` against transformers and torch.optim, through debug.dump_dir.

    python compare.py --binary build/plimsoll [--all] [--family NAME] [--pretrained] [--only TEXT] [--record FILE] [--keep DIR]

Each case of cases.py is trained for ten steps from random weights with every step dumped. Then, per step, from the
parameters that Plimsoll had before it: loss, logits and each gradient are transformers' own; the update is the
optimizer's formula applied to Plimsoll's gradients. And from step 0 on, PyTorch takes the same ten steps by itself, alongside.
One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import safetensors.numpy  # noqa: E402

import cases  # noqa: E402
import dropout  # noqa: E402
from checks import Checks  # noqa: E402
import oracle  # noqa: E402
import pretrained  # noqa: E402
import recording  # noqa: E402

LOSS_TOLERANCE = 1e-5       # relative
TENSOR_TOLERANCE = 1e-4     # of the reference's norm …
FLOOR_TOLERANCE = 1e-6      # … and of the norm of all tensors of the kind
ABSENT = "absent"           # a setting that the run file leaves out


def training_of(case):
    return cases.TRAINING | case["settings"]


def rows_of(case):
    """Tokens [steps x batch, T], the same every time; every id of the vocabulary may occur."""
    count = training_of(case)["max_steps"] * case["batch"]
    seed = sum(map(ord, case["name"]))
    return numpy.random.default_rng(seed).integers(0, case["config"]["vocab_size"], (count, case["tokens"]), dtype=numpy.int32)


def write_inputs(case, folder):
    folder.mkdir(parents=True)
    if case["pretrained"] is None:
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text(json.dumps(case["config"], indent=2))
    else:
        pretrained.write(case, folder / "model")
    numpy.save(folder / "tokens.npy", rows_of(case))
    run = {
        "model": {"path": str(folder / "model"), "init": "random" if case["pretrained"] is None else "pretrained"},
        "data": {"train": str(folder / "tokens.npy"), "sequence_length": case["tokens"], "shuffle": False},
        "training": {"global_batch_size": case["batch"], **{k: v for k, v in training_of(case).items() if v != ABSENT}},
        "runtime": {"device": "cpu", "threads": 2},
        "output": {"dir": str(folder / "out")},
        "debug": {"dump_dir": str(folder / "dump"), "dump": ["loss", "gradients", "logits", "parameters"]},
    }
    if case["pretrained"] is not None:
        run["output"]["dtype"] = "fp32"  # as it is dumped, to the last bit, not as the model came
    (folder / "run.yaml").write_text(json.dumps(run, indent=2))  # JSON is YAML


def train(binary, folder):
    """Runs Plimsoll; returns its step events. Raises RuntimeError with what it said on stderr."""
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), "--json"], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event["event"] == "step"]


def dump_of(folder, step):
    tensors = safetensors.numpy.load_file(folder / "dump" / f"step-{step:06d}.safetensors")

    def under(prefix):
        return {name[len(prefix):]: value for name, value in tensors.items() if name.startswith(prefix)}
    return dict(loss=tensors.get("loss"), logits=tensors.get("logits"), gradients=under("grad."), parameters=under("param."))


def difference(ours, theirs):
    return float(numpy.linalg.norm(ours.astype(numpy.float64).ravel() - theirs.astype(numpy.float64).ravel()))


def norm(tensor):
    return float(numpy.linalg.norm(tensor.astype(numpy.float64).ravel()))


def tensor_measures(ours, theirs, step):
    """One (difference, limit, label) per tensor; a missing or misshapen one is infinitely far away."""
    floor = FLOOR_TOLERANCE * oracle.total_norm(theirs)
    for name, reference in theirs.items():
        label = f"step {step} {name}"
        if name not in ours or ours[name].shape != reference.shape:
            yield float("inf"), 1.0, f"{label} absent or of another shape"
        else:
            yield difference(ours[name], reference), TENSOR_TOLERANCE * norm(reference) + floor, label
    for name in ours.keys() - theirs.keys():
        yield float("inf"), 1.0, f"step {step} {name} is unknown to transformers"


def relative(ours, theirs, limit, label):
    return abs(float(ours) - theirs) / max(abs(theirs), 1e-30), limit, label


def update_measures(dumped, predicted, before, step):
    """The new parameter is right to fp32 rounding, and the change itself to 1e-4."""
    for name, reference in predicted.items():
        limit = 1e-6 * norm(reference) + TENSOR_TOLERANCE * norm(reference - before[name]) + 1e-30
        yield difference(dumped[name], reference), limit, f"step {step} {name}"


def compare_case(case, binary, folder, checks):
    """Returns what the recording needs."""
    name, training = case["name"], training_of(case)
    write_inputs(case, folder)
    events = train(binary, folder)
    steps = training["max_steps"]
    checks.check(name, "steps", len(events) == steps, f"{len(events)} of {steps}")
    rows = rows_of(case)
    initial = dump_of(folder, 0)["parameters"]
    if case["pretrained"] is not None:
        pretrained.check_start(case, folder, initial, checks)
    stepwise = oracle.freeze(oracle.build(folder / "model", initial), training)
    alongside = oracle.Alongside(folder / "model", initial, training)
    update, before = oracle.Update(training), initial
    check_decay(name, training, stepwise, checks)
    losses, logits, gradients, updates, along, scalars = [], [], [], [], [], []
    recorded = recording.Case(case, training, rows, initial)
    for event in events:
        step = event["step"]
        ids = oracle.batch_of(case, rows, step)
        dump = dump_of(folder, step)
        oracle.load(stepwise, before)
        with dropout.drawn(case["config"], step, training["seed"]):
            loss, _, reference_gradients = oracle.loss_and_gradients(stepwise, ids)
        reference_logits = oracle.logits(stepwise, ids)
        losses.append(relative(dump["loss"][0], loss, LOSS_TOLERANCE, f"step {step}"))
        logits.extend(tensor_measures({"logits": dump["logits"]}, {"logits": reference_logits}, step))
        gradients.extend(tensor_measures(dump["gradients"], reference_gradients, step))
        predicted = update.apply(before, dump["gradients"])
        updates.extend(update_measures(dump["parameters"], predicted, before, step))
        with dropout.drawn(case["config"], step, training["seed"]):
            their_loss, their_norm = alongside.step(ids, dump["gradients"])
        along.append(relative(event["loss"], their_loss, LOSS_TOLERANCE, f"step {step}"))
        scalars.append(relative(event["grad_norm"], their_norm, TENSOR_TOLERANCE, f"step {step} grad_norm"))
        rate = oracle.learning_rate(training, step)
        scalars.append((abs(event["learning_rate"] - rate), 1e-6 * training["learning_rate"], f"step {step} learning_rate"))
        recorded.add_step(their_loss, their_norm, reference_logits, reference_gradients)
        before = dump["parameters"]
    checks.worst(name, "loss", losses)
    checks.worst(name, "logits", logits)
    checks.worst(name, "gradients", gradients)
    checks.worst(name, "update", updates)
    checks.worst(name, "losses alongside", along)
    checks.worst(name, "norm and rate alongside", scalars)
    check_parameters(name, before, alongside, checks)
    if case["pretrained"] is not None:
        pretrained.check_final(case, binary, folder, rows, before, checks)
    return recorded


def check_decay(name, training, model, checks):
    """weight_decay_scope matrices is the Hugging Face Trainer's choice of parameters."""
    if training["weight_decay_scope"] != "matrices":
        return
    ours = {key for key, value in model.named_parameters() if oracle.decays(training, value.shape)}
    differing = sorted(ours ^ oracle.decayed_names(model))
    checks.check(name, "decayed parameters", not differing, f"{len(ours)}, differing {differing[:3]}")


def check_parameters(name, ours, alongside, checks):
    """After the last step, where the gradient was more than noise in all of them."""
    masks = alongside.meaningful
    share = sum(mask.sum() for mask in masks.values()) / sum(mask.size for mask in masks.values())
    checks.worst(name, f"parameters alongside, {100 * share:.1f} %", list(tensor_measures(
        {key: value * masks[key] for key, value in ours.items() if key in masks},
        {key: value * masks[key] for key, value in alongside.parameters().items()}, "last")))
    checks.check(name, "share of parameters compared", share >= 0.9, f"{share:.3f} of at least 0.9")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--family", action="append", default=[], choices=sorted(cases.FAMILIES), help="its cases too, beside llama's")
    parser.add_argument("--pretrained", action="store_true", help="from and to transformers' directories, every family")
    parser.add_argument("--all", action="store_true", help="every case")
    parser.add_argument("--only", default="", help="cases whose name contains this, of every family")
    parser.add_argument("--record", help="write small values of the recorded cases to this JSON file")
    parser.add_argument("--keep", help="leave inputs and dumps in this folder")
    return parser.parse_args()


def main():
    args = parse_arguments()
    everything = args.all or args.only != ""
    chosen = cases.LLAMA_CASES + cases.OPTIMIZER_CASES + cases.SELECTION_CASES
    for family, own in cases.FAMILY_CASES.items():
        chosen = chosen + (own if family != "llama" and (everything or family in args.family) else [])
    chosen = chosen + (cases.PRETRAINED_CASES if everything or args.pretrained else [])
    chosen = [case for case in chosen if args.only in case["name"]]
    checks, recorded = Checks(), []
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(args.keep or scratch).resolve()
        for number, case in enumerate(chosen):
            folder = root / f"{number:02d}"
            try:
                result = compare_case(case, os.path.abspath(args.binary), folder, checks)
            except (RuntimeError, ValueError, OSError, KeyError, subprocess.TimeoutExpired) as failure:
                checks.check(case["name"], "ran", False, f"{type(failure).__name__}: {failure}")
                continue
            if case["record"]:
                recorded.append(result)
    if args.record and not checks.failed:
        recording.write(args.record, recorded)
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
