"""Writes tests/ops/pointwise_torch.h: what PyTorch gives for the functions of `pointwise` and for the ops beside it, in float64, with
the gradients of a weighted sum, at places where conventions differ (zeros, equal operands, limits of clamp) and at others.

    .venv-bench/bin/python tests/interop/record_pointwise.py
"""
import pathlib

import torch
import torch.nn.functional as F

X = [-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0, 2.0]
Y = [0.5, -1.0, 2.0, 0.0, 0.25, 2.0, -1.5, 2.0]
Z = [1.0, 0.0, -1.0, 2.0, 0.5, 1.5, 0.25, 2.0]

# name, op text of pointwise, the same in torch, whether operands are made positive
CASES = [
    ("neg", "neg(x0)", lambda x, y, z: -x, False),
    ("abs", "abs(x0)", lambda x, y, z: x.abs(), False),
    ("sign", "add(sign(x0),x1)", lambda x, y, z: x.sign() + y, False),
    ("sqrt", "sqrt(x0)", lambda x, y, z: x.sqrt(), True),
    ("rsqrt", "rsqrt(x0)", lambda x, y, z: x.rsqrt(), True),
    ("exp", "exp(x0)", lambda x, y, z: x.exp(), False),
    ("log", "log(x0)", lambda x, y, z: x.log(), True),
    ("tanh", "tanh(x0)", lambda x, y, z: x.tanh(), False),
    ("sigmoid", "sigmoid(x0)", lambda x, y, z: x.sigmoid(), False),
    ("softplus", "softplus(x0)", lambda x, y, z: F.softplus(x, threshold=1000), False),
    ("erf", "erf(x0)", lambda x, y, z: torch.erf(x), False),
    ("relu", "relu(x0)", lambda x, y, z: F.relu(x), False),
    ("sub", "sub(x0,x1)", lambda x, y, z: x - y, False),
    ("div", "div(x0,x1)", lambda x, y, z: x / y, True),
    ("pow", "pow(x0,x1)", lambda x, y, z: x**y, True),
    ("square", "pow(x0,2)", lambda x, y, z: x**2, False),
    ("cube", "pow(x0,3)", lambda x, y, z: x**3, False),
    ("power of 1.5", "pow(x0,1.5)", lambda x, y, z: x**1.5, True),
    ("maximum", "max(x0,x1)", lambda x, y, z: torch.maximum(x, y), False),
    ("minimum", "min(x0,x1)", lambda x, y, z: torch.minimum(x, y), False),
    ("comparison", "mul(x0,gt(x0,x1))", lambda x, y, z: x * (x > y), False),
    ("where", "where(ge(x0,x1),mul(x0,x2),x1)", lambda x, y, z: torch.where(x >= y, x * z, y), False),
    ("clamp", "clamp(x0,-1,1)", lambda x, y, z: x.clamp(-1, 1), False),
    ("clamp from below", "clamp(x0,0.25,inf)", lambda x, y, z: x.clamp(min=0.25), False),
    ("silu", "mul(x0,sigmoid(x0))", lambda x, y, z: F.silu(x), False),
    ("gelu", "mul(mul(x0,0.5),add(1,erf(mul(x0,0.7071067811865476))))", lambda x, y, z: F.gelu(x), False),
    ("squared error", "t0=sub(x0,x1);mul(t0,t0)", lambda x, y, z: F.mse_loss(x, y, reduction="none"), False),
    ("bce with logits", "add(mul(sub(1,x1),x0),softplus(neg(x0)))",
     lambda x, y, z: F.binary_cross_entropy_with_logits(x, y, reduction="none"), False),
]


def numbers(tensor):
    return "{" + ", ".join(repr(float(v)) for v in tensor.detach().flatten()) + "}"


def main():
    lines = []
    for name, text, function, positive in CASES:
        operands = [torch.tensor(v, dtype=torch.float64) for v in (X, Y, Z)]
        if positive:
            operands = [v.abs() + 0.25 for v in operands]
        operands = [v.requires_grad_() for v in operands]
        result = function(*operands)
        used = [o for i, o in enumerate(operands) if f"x{i}" in text]
        weights = torch.arange(1, len(X) + 1, dtype=torch.float64)
        grads = torch.autograd.grad((result * weights).sum(), used, allow_unused=True)
        grads = [torch.zeros_like(o) if g is None else g for g, o in zip(grads, used)]
        lines.append(f'    {{"{name}", "{text}", {"true" if positive else "false"}, {numbers(result)}, '
                     f'{{{", ".join(numbers(g) for g in grads)}}}}},')
    header = pathlib.Path(__file__).resolve().parent.parent / "ops" / "pointwise_torch.h"
    header.write_text(f"""// Made by tests/interop/record_pointwise.py with PyTorch {torch.__version__.split("+")[0]}.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::ops_testing {{

struct TorchCase {{
  std::string name, text;
  bool is_positive = false;  ///< operands are |x| + 0.25
  std::vector<double> result;
  std::vector<std::vector<double>> gradients;  ///< of the sum of results times 1, 2, 3, ...
}};
inline const std::vector<double> kTorchX = {numbers(torch.tensor(X))}, kTorchY = {numbers(torch.tensor(Y))},
                                 kTorchZ = {numbers(torch.tensor(Z))};
inline const std::vector<TorchCase> kTorchCases = {{
""" + "\n".join(lines) + """
};

}  // namespace plimsoll::ops_testing
""")


if __name__ == "__main__":
    main()
