"""Holds bf16 weights with fp32 masters against PyTorch: a bf16 model beside fp32 masters that AdamW updates.

    python state_compare.py --binary build/plimsoll [--only TEXT]

A few steps of small models. In the first one, from the same weights, each gradient is held against PyTorch's and against fp64 by
the limits of precision_compare.py; then losses and weights stay together. transformers opens what is left in final/, in bf16.
"""
import argparse
import copy
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
import oracle  # noqa: E402
import precision_compare  # noqa: E402
from checks import Checks  # noqa: E402

STEPS = 4
LOSS_LIMIT, WEIGHT_LIMIT = 4e-3, 8e-3
STATES = {
    "bf16 gradients": dict(weights="bf16", gradients="bf16"),
    "fp32 gradients": dict(weights="bf16"),
    "pure bf16": dict(weights="bf16", gradients="bf16", moments="bf16", master_weights=False),
}


def dump_of(folder, step, prefix):
    tensors = safetensors.torch.load_file(folder / "dump" / f"step-{step:06d}.safetensors")
    return {name[len(prefix):]: value.float().numpy() for name, value in tensors.items() if name.startswith(prefix)}


class Masters:
    """A bf16 model whose fp32 masters are what is updated."""

    def __init__(self, config_dir, initial, training):
        self.model = oracle.build(config_dir, initial).to(torch.bfloat16)
        self.masters = {name: torch.nn.Parameter(torch.from_numpy(value).clone()) for name, value in initial.items()}
        decay = [m for m in self.masters.values() if m.dim() >= 2]
        rest = [m for m in self.masters.values() if m.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [dict(params=decay, weight_decay=training["weight_decay"]), dict(params=rest, weight_decay=0.0)],
            lr=training["learning_rate"], betas=(training["adam_beta1"], training["adam_beta2"]), eps=training["adam_epsilon"])
        self.clip = training["max_grad_norm"]

    def gradients(self, ids):
        self.model.zero_grad(set_to_none=True)
        loss = self.model(input_ids=ids, labels=ids).loss
        loss.backward()
        return loss.item(), {name: p.grad.float().numpy().copy() for name, p in self.model.named_parameters()}

    def update(self, gradients):
        for name, master in self.masters.items():
            master.grad = torch.from_numpy(gradients[name].copy())
        torch.nn.utils.clip_grad_norm_(list(self.masters.values()), self.clip)
        self.optimizer.step()
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(self.masters[name])


def first_weights(case, binary, folder):
    """The masters before the first step: the same draws as of a run that keeps its weights in fp32."""
    plain = copy.deepcopy(case)
    plain["settings"].pop("state")
    plain["settings"]["max_steps"] = 1
    compare.write_inputs(plain, folder)
    compare.train(binary, folder)
    return dump_of(folder, 0, "param.")


def check_final(label, folder, ids, loss, checks):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "out" / "final", dtype="auto")
    checks.check(label, "final/ is bf16 to transformers", model.dtype == torch.bfloat16, str(model.dtype))
    with torch.no_grad():
        theirs = model(input_ids=ids, labels=ids).loss.item()
    checks.worst(label, "final/ gives PyTorch's loss", [compare.relative(theirs, loss, LOSS_LIMIT, "after the last step")])


def compare_model(name, config, state, binary, folder, checks):
    training = dict(max_steps=STEPS, precision="bf16", lr_scheduler="constant", warmup_steps=0, learning_rate=1e-3, state=STATES[state])
    case = cases.case(name, config, 2, 70, **training)
    label = f"{name}, {state}"
    initial = first_weights(case, binary, folder / "plain")
    compare.write_inputs(case, folder / "run")
    events = compare.train(binary, folder / "run")
    folder = folder / "run"
    theirs = Masters(folder / "model", initial, compare.training_of(case))
    rows = compare.rows_of(case)
    losses, weights = [], []
    for event in events:
        step, ids = event["step"], oracle.batch_of(case, rows, event["step"])
        loss, gradients = theirs.gradients(ids)
        losses.append(compare.relative(event["loss"], loss, LOSS_LIMIT, f"step {step}"))
        if step == 1:
            exact_model = copy.deepcopy(theirs.model).double()
            _, _, exact = oracle.loss_and_gradients(exact_model, ids)
            ours, apart = dump_of(folder, 1, "grad."), precision_compare.apart
            precision_compare.check_short(label, apart(ours, exact), apart(gradients, exact), apart(ours, gradients), checks)
        theirs.update(gradients)
        ours = dump_of(folder, step, "param.")
        for key, parameter in theirs.model.named_parameters():
            if not initial[key].any():
                continue  # biases: nothing but updates, and where the gradient is 0 (keys) their sign is noise
            value = parameter.detach().float().numpy()
            weights.append((compare.difference(ours[key], value) / max(compare.norm(value), 1e-30), WEIGHT_LIMIT, f"step {step} {key}"))
    checks.worst(label, "losses beside PyTorch's", losses)
    checks.worst(label, "weights beside PyTorch's", weights)
    ids = oracle.batch_of(case, rows, 1)
    check_final(label, folder, ids, theirs.gradients(ids)[0], checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    checks = Checks()
    chosen = [(name, state) for name in ("llama", "llama, tied", "qwen3", "gpt2") for state in STATES if args.only in f"{name}, {state}"]
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, state) in enumerate(chosen):
            compare_model(name, precision_compare.MODELS[name], state, os.path.abspath(args.binary),
                          pathlib.Path(scratch).resolve() / f"{number:02d}", checks)
    print(f"state: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
