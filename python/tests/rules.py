"""The published rules of optimizers that torch.optim has not, or has in bf16: plain formulas on float64 arrays.

Each is made of the parameters by name and a learning rate, and ``step`` takes the gradients by name.
"""
import sys

import common
import numpy as np

sys.path.insert(0, str(common.ROOT / "tests" / "interop"))


class Rule:
    def __init__(self, values, lr, decay=0.0):
        self.values = {name: value.astype(np.float64) for name, value in values.items()}
        self.lr, self.decay, self.steps, self.states = lr, decay, 0, {name: {} for name in values}

    def step(self, gradients):
        self.steps += 1
        for name, gradient in gradients.items():
            update = self.update(self.states[name], gradient.astype(np.float64))
            self.values[name] = self.values[name] * (1 - self.lr * self.decay) - self.lr * update


class AdamW(Rule):
    betas, eps = (0.9, 0.999), 1e-8

    def update(self, state, g):
        (b1, b2), t = self.betas, self.steps
        state["m"] = b1 * state.get("m", 0.0) + (1 - b1) * g
        state["v"] = b2 * state.get("v", 0.0) + (1 - b2) * g * g
        return state["m"] / (1 - b1 ** t) / (np.sqrt(state["v"] / (1 - b2 ** t)) + self.eps)


class Lion(Rule):
    """Chen et al. 2023, arXiv:2302.06675, algorithm 2."""

    def __init__(self, values, lr, decay, betas):
        super().__init__(values, lr, decay)
        self.betas = betas

    def update(self, state, g):
        (b1, b2), m = self.betas, state.get("m", 0.0)
        state["m"] = b2 * m + (1 - b2) * g
        return np.sign(b1 * m + (1 - b1) * g)


class Adafactor(Rule):
    """Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5 with a given rate."""

    def update(self, state, g):
        keep, squares = 1 - self.steps ** -0.8, g * g + 1e-30
        if g.ndim < 2:
            state["v"] = keep * state.get("v", 0.0) + (1 - keep) * squares
            update = g / np.sqrt(state["v"])
        else:
            for name, axis in (("rows", -1), ("columns", -2)):
                state[name] = keep * state.get(name, 0.0) + (1 - keep) * squares.mean(axis, keepdims=True)
            update = g / np.sqrt(state["rows"] / state["rows"].mean(-2, keepdims=True) * state["columns"])
        return update / max(1.0, np.sqrt((update ** 2).mean()))


class Muon(AdamW):
    """Jordan 2024, kellerjordan.github.io/posts/muon, for matrices, with torch.optim.Muon's "original" adjustment of the rate."""

    def __init__(self, values, lr, decay, momentum, nesterov):
        super().__init__(values, lr, decay)
        self.momentum, self.nesterov = momentum, nesterov

    def update(self, state, g):
        if g.ndim < 2:
            return super().update(state, g)
        state["m"] = self.momentum * state.get("m", 0.0) + (1 - self.momentum) * g
        x = (1 - self.momentum) * g + self.momentum * state["m"] if self.nesterov else state["m"]
        is_wide = g.shape[0] < g.shape[1]
        x = (x.T if is_wide else x) / max(np.linalg.norm(x), 1e-7)
        for _ in range(5):
            gram = x.T @ x
            x = 3.4445 * x + x @ (-4.7750 * gram + 2.0315 * gram @ gram)
        return (x.T if is_wide else x) * np.sqrt(max(1.0, g.shape[0] / g.shape[1]))


class AdamW8bit(AdamW):
    """Dettmers et al. 2022, arXiv:2110.02861: the moments of tensors of at least 4,096 elements are codes between steps."""

    def update(self, state, g):
        from codes_8bit import Codes, dynamic_map

        is_coded = g.size >= 4096
        if is_coded and not state:
            state["codes"] = {"m": Codes(g.size, dynamic_map(True)), "v": Codes(g.size, dynamic_map(False))}
        if is_coded:
            state.update({name: codes.values().reshape(g.shape) for name, codes in state["codes"].items()})
        update = super().update(state, g)
        if is_coded:
            for name, codes in state["codes"].items():
                codes.put(state[name].ravel())
        return update
