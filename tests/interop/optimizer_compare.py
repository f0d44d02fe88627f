"""Holds twenty steps of each optimizer against torch.optim, transformers' Adafactor or the published rule.

    python optimizer_compare.py --binary build/plimsoll [--only TEXT]

A small model is trained by `plimsoll train` with every step dumped. The reference takes the dumped gradients and nothing else: it
begins with the dumped start and is never set right, so what is apart at the end is the rules' doing alone. It computes in fp64, in
which it has no rounding of its own; measured is, after each step and of each parameter, the norm of the difference over the norm of
the parameter, at most 1e-6.

Where a state is codes, the reference computes in fp32 as the rule is written, without fused multiply-adds, and its codes are the
nearest of the published map: after twenty steps every code and every block's scale is the checkpoint's own.
"""
import argparse
import math
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import safetensors.numpy  # noqa: E402
import torch  # noqa: E402
from transformers.optimization import Adafactor  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
import oracle  # noqa: E402
from checks import Checks  # noqa: E402
from codes_8bit import Codes, dynamic_map  # noqa: E402

STEPS, LIMIT = 20, 1e-6
# Fused tensors (q, k and v; gate and up), biases, vectors, matrices on both sides of 4,096 elements.
MODEL = cases.LLAMA | dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                           num_hidden_layers=1, attention_bias=True, vocab_size=97)
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023, arXiv:2302.06675; torch.optim has none. Where momentum and gradient cancel to the last bits
    of fp32 the sign is rounding's: those elements are `open`."""

    def __init__(self, groups, betas):
        super().__init__(groups, dict(lr=0.1, betas=betas))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), rate = group["betas"], group["lr"]
            for p in group["params"]:
                state = self.state[p]
                m = state.setdefault("m", torch.zeros_like(p))
                mixed, size = b1 * m + (1 - b1) * p.grad, b1 * m.abs() + (1 - b1) * p.grad.abs()
                state["open"] = state.get("open", False) | ((mixed.abs() < 1e-5 * size) & (size > 0))
                p.mul_(1 - rate * group["weight_decay"]).sub_(rate * torch.sign(mixed))
                m.mul_(b2).add_((1 - b2) * p.grad)


class Muon(torch.optim.Muon):
    """With products in the parameter's own type: torch's are in bf16, whose rounding is no part of the rule."""

    def step(self):
        short, torch.bfloat16 = torch.bfloat16, torch.float64
        try:
            super().step()
        finally:
            torch.bfloat16 = short


class Reference:
    """The optimizer in fp64 on the parameters `initial` by name."""

    def __init__(self, training, initial):
        self.training, self.steps = training, 0
        self.parameters = {name: torch.nn.Parameter(torch.from_numpy(value.astype(numpy.float64))) for name, value in initial.items()}
        self.optimizers = []
        matrices = {name for name in initial if name.startswith("model.layers.") and initial[name].ndim == 2}
        hidden = matrices if training["optimizer"] == "muon" else set()
        for names, kind in ((hidden, "muon"), (set(initial) - hidden, "adamw" if hidden else training["optimizer"])):
            groups = {}
            for name in sorted(names):
                groups.setdefault(oracle.decay_of(training, name, initial[name].shape), []).append(self.parameters[name])
            if groups:
                self.optimizers.append(self.make(kind, [dict(params=members, weight_decay=decay) for decay, members in groups.items()]))

    def make(self, kind, groups):
        t = self.training
        betas, rate = (t["adam_beta1"], t["adam_beta2"]), t["learning_rate"]
        if kind in ("sgd", "adam", "adamw"):
            return oracle.optimizer_of(groups, t | dict(optimizer=kind))
        if kind == "lion":
            return Lion(groups, betas)
        if kind == "muon":
            return Muon(groups, lr=rate, **t["muon"])
        options = dict(scale_parameter=False, relative_step=False) | t.get("adafactor", {})
        return Adafactor(groups, lr=None if options["relative_step"] else rate, **options)

    def step(self, gradients):
        self.steps += 1
        is_given = self.training["learning_rate"] != compare.ABSENT
        rate = oracle.learning_rate(self.training, self.steps) if is_given else None
        for name, parameter in self.parameters.items():
            parameter.grad = torch.from_numpy(gradients[name].astype(numpy.float64))
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    def values(self):
        return {name: p.detach().numpy() for name, p in self.parameters.items()}

    def open(self, name):
        """Elements of which either result is right."""
        for optimizer in self.optimizers:
            mask = optimizer.state.get(self.parameters[name], {}).get("open")
            if mask is not None:
                return mask.numpy()
        return numpy.zeros(self.parameters[name].shape, bool)


class Adamw8bit:
    """The rule of a tensor of at least 4,096 elements, in fp32, operation by operation."""

    def __init__(self, training, value):
        self.training, self.shape, self.steps = training, value.shape, 0
        self.decay = training["weight_decay"] if value.ndim >= 2 else 0.0
        self.p = value.ravel()
        self.first, self.second = Codes(self.p.size, dynamic_map(True)), Codes(self.p.size, dynamic_map(False))

    def step(self, gradient):
        t, f = self.training, numpy.float32
        self.steps += 1
        rate, (b1, b2) = oracle.learning_rate(t, self.steps), (t["adam_beta1"], t["adam_beta2"])
        g = gradient.ravel()
        m = self.first.values() * f(b1) + g * f(1 - b1)
        v = self.second.values() * f(b2) + g * f(1 - b2) * g
        denominator = numpy.sqrt(v) / f(math.sqrt(1 - b2 ** self.steps)) + f(t["adam_epsilon"])
        self.p = self.p * f(1 - rate * self.decay) - f(rate / (1 - b1 ** self.steps)) * (m / denominator)
        self.first.put(m)
        self.second.put(v)

    def value(self):
        return self.p.reshape(self.shape)


def storages(initial):
    """The tensors that lie in one storage, by its name."""
    groups = {}
    for name in initial:
        fused = next((name.replace(part, whole) for whole, parts in FUSED.items() for part in parts if f".{part}." in name), name)
        groups.setdefault(fused, []).append(name)
    order = {part: i for parts in FUSED.values() for i, part in enumerate(parts)}
    return {fused: sorted(names, key=lambda n: order.get(n.split(".")[-2], 0)) for fused, names in groups.items()}


class Reference8bit(Reference):
    """adamw_8bit: tensors of 4,096 elements in codes, the rest as adamw; what lies side by side shares no block."""

    def __init__(self, training, initial):
        self.storages = storages(initial)
        self.coded = {n: Adamw8bit(training, v) for n, v in initial.items() if v.size >= 4096}
        super().__init__(training | dict(optimizer="adamw"), {n: v for n, v in initial.items() if n not in self.coded})

    def step(self, gradients):
        super().step(gradients)
        for name, coded in self.coded.items():
            coded.step(gradients[name])

    def values(self):
        return super().values() | {name: coded.value() for name, coded in self.coded.items()}

    def open(self, name):
        return numpy.zeros((), bool) if name not in self.parameters else super().open(name)

    def check_states(self, case, folder, checks):
        stored = safetensors.numpy.load_file(folder / "out" / f"checkpoint-{STEPS}" / "optimizer.safetensors")
        for state, pick in (("m", lambda c: c.first), ("v", lambda c: c.second)):
            ours = numpy.concatenate([stored[f"adamw_8bit.{state}.{n}"].ravel() for n in self.coded])
            theirs = numpy.concatenate([pick(c).codes for c in self.coded.values()])
            apart = int((ours != theirs).sum())
            checks.check(case, f"codes of {state} are the nearest", apart == 0 and ours.size > 0, f"{apart} of {ours.size} differ")
            prefix = f"adamw_8bit.{state}_absmax."  # of a storage whose tensors have whole blocks, or of each tensor
            ours = numpy.concatenate([stored[prefix + (fused if prefix + fused in stored else name)]
                                      for fused, names in self.storages.items() for name in names
                                      if name in self.coded and (prefix + fused not in stored or name == names[0])])
            theirs = numpy.concatenate([pick(self.coded[n]).absmax for names in self.storages.values() for n in names if n in self.coded])
            checks.check(case, f"scales of {state}", numpy.array_equal(ours, theirs), f"{(ours != theirs).sum()} of {ours.size} differ")


ADAM = dict(adam_beta1=0.9, adam_beta2=0.99, adam_epsilon=1e-8, learning_rate=1e-3)
RATELESS = dict.fromkeys(("learning_rate", "lr_scheduler", "warmup_steps"), compare.ABSENT)  # the rate follows from the step
MUON = dict(momentum=0.95, nesterov=True)
# Without clipping: the norm is another sum; compare.py has it.
OPTIMIZERS = {
    "adamw": ADAM,
    "adam": ADAM | dict(weight_decay=0.0),
    "sgd": dict(learning_rate=0.05),
    "sgd, momentum and dampening": dict(learning_rate=0.05, momentum=0.9, dampening=0.3),
    "sgd, nesterov": dict(learning_rate=0.05, momentum=0.9, nesterov=True),
    "lion": ADAM | dict(learning_rate=3e-4),
    "adafactor": dict(learning_rate=1e-3),
    "adafactor, relative": RATELESS | dict(adafactor=dict(scale_parameter=True, relative_step=True)),
    "adafactor, first moment": dict(learning_rate=1e-3, adafactor=dict(beta1=0.9, clip_threshold=0.7, decay_rate=-0.6)),
    "muon": ADAM | dict(muon=MUON | dict(adjust_lr_fn="match_rms_adamw", ns_steps=4)),
    "muon, original": ADAM | dict(learning_rate=5e-3, muon=MUON | dict(adjust_lr_fn="original", nesterov=False, momentum=0.9)),
    "adamw_8bit": ADAM,
}
SECTIONS = ("adafactor", "muon")


def settings_of(label):
    given = OPTIMIZERS[label]
    return dict(max_steps=STEPS, max_grad_norm=0, optimizer=label.split(",")[0], save_steps=STEPS) | given


def compare_optimizer(label, binary, folder, checks):
    case = cases.case(label, MODEL, 2, 23, **settings_of(label))
    training = compare.training_of(case)
    compare.write_inputs(case, folder)
    compare.train(binary, folder)
    initial = compare.dump_of(folder, 0)["parameters"]
    theirs = (Reference8bit if label == "adamw_8bit" else Reference)(training, initial)
    measured = []
    for step in range(1, STEPS + 1):
        dump = compare.dump_of(folder, step)
        theirs.step(dump["gradients"])
        for name, value in theirs.values().items():
            ours = numpy.where(theirs.open(name), value, dump["parameters"][name])
            measured.append((compare.difference(ours, value), LIMIT * max(compare.norm(value), 1e-30), f"step {step} {name}"))
    moved = min(compare.difference(value, initial[name]) / max(compare.norm(value), 1e-30) for name, value in theirs.values().items())
    is_open = sum(int(theirs.open(name).sum()) for name in initial)
    worst = max(measured, key=lambda m: m[0] / m[1])
    checks.check(label, "parameters over twenty steps", worst[0] <= worst[1],
                 f"{worst[0] / worst[1] * LIMIT:.2e} of their norm ({worst[2]}); each moved by {moved:.1e} at least")
    checks.check(label, "all moved, few are open", moved > 1e-3 and is_open <= 20, f"{is_open} elements left out")
    if label == "adamw_8bit":
        theirs.check_states(label, folder, checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="optimizers whose name contains this")
    args = parser.parse_args()
    checks = Checks()
    chosen = [label for label in OPTIMIZERS if args.only in label]
    with tempfile.TemporaryDirectory() as scratch:
        for number, label in enumerate(chosen):
            compare_optimizer(label, os.path.abspath(args.binary), pathlib.Path(scratch).resolve() / f"{number:02d}", checks)
    print(f"optimizers: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
