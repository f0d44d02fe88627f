"""Plimsoll trains neural networks within a memory budget that is known before the first step.

    import plimsoll as pl

    class Net(pl.Module):
        def __init__(self):
            self.up, self.down = pl.Linear(7, 64), pl.Linear(64, 1)

        def forward(self, x, y):
            return pl.mse(self.down(pl.gelu(self.up(x))), y)

    plan = pl.plan(Net(), inputs={"x": ((16, 7), "float32"), "y": ((16, 1), "float32")}, optimizer=pl.AdamW(lr=1e-3))
    print(plan)                         # the memory by class, before anything runs
    with pl.Session(plan, seed=0) as session:
        step = session.step({"x": x, "y": y})
        print(step.index, step.loss)

``import plimsoll`` loads no shared library, starts no thread and opens no device; numpy is imported at its first use.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

from ._module import Buffer, Module, ModuleList, Parameter, Sequential
from ._values import Value
from .errors import (DataError, Diverged, DoesNotFit, InternalError, PlimsollError, SettingError, UnsupportedOp)
from .functional import (abs, adaptive_avg_pool2d, add, arange, attention, avg_pool2d, batch_norm,
                         binary_cross_entropy_with_logits, cast, cat, chunk, clamp, conv1d, conv2d, cross_entropy, detach, div, dropout,
                         embedding, eq, exp, expand, flatten, flip, full, gather, ge, gelu, group_norm, gt, index_select,
                         layer_norm, le, log, log_softmax, lt, matmul, max, max_pool2d, maximum, mean, minimum, mse, mul, ne, neg,
                         ones, permute, pow, relu, reshape, rms_norm, rsqrt, sigmoid, silu, softmax, split, sqrt, square,
                         squeeze, stack, sub, sum, tanh, transpose, unsqueeze, value, where, zeros)
from .image_layers import (AdaptiveAvgPool2d, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Flatten, GroupNorm, MaxPool2d)
from .layers import Dropout, Embedding, LayerNorm, Linear, RMSNorm
from .optimizers import SGD, Adafactor, Adam, AdamW, AdamW8bit, Lion, Muon, Optimizer
from .planning import Plan, plan
from .schedules import constant, cosine, linear
from .scopes import autocast, checkpoint, checkpoint_sequential
from .session import Session, Step

if TYPE_CHECKING:
    from . import callbacks
    from .arguments import TrainingArguments
    from .data import DataLoader
    from .generation import generate
    from .trainer import Trainer, TrainOutput

# Names that are imported at their first use, since not every program needs them, and their modules.
_LATER = {"DataLoader": "data", "Trainer": "trainer", "TrainOutput": "trainer", "TrainingArguments": "arguments",
          "generate": "generation"}
_MODULES = ("callbacks", "nn", "schedules", "torch")

__all__ = [
    "Module", "ModuleList", "Sequential", "Parameter", "Buffer", "Value", "Linear", "Embedding", "RMSNorm", "LayerNorm", "Dropout",
    "Conv1d", "Conv2d", "BatchNorm1d", "BatchNorm2d", "GroupNorm", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "Flatten",
    "abs", "adaptive_avg_pool2d", "add", "arange", "attention", "avg_pool2d", "batch_norm", "binary_cross_entropy_with_logits", "cast",
    "cat", "chunk", "clamp", "conv1d", "conv2d", "cross_entropy", "detach", "div", "dropout", "embedding", "eq", "exp", "expand", "flatten",
    "flip", "full", "gather", "ge", "gelu", "group_norm", "gt", "index_select", "layer_norm", "le", "log", "log_softmax", "lt",
    "matmul", "max", "max_pool2d", "maximum", "mean", "minimum", "mse",
    "mul", "ne", "neg", "ones", "permute", "pow", "relu", "reshape", "rms_norm", "rsqrt", "sigmoid", "silu", "softmax",
    "split", "sqrt", "square", "squeeze", "stack", "sub", "sum", "tanh", "transpose", "unsqueeze", "value", "where", "zeros",
    "autocast", "checkpoint", "checkpoint_sequential", "SGD", "Adafactor", "Adam", "AdamW", "AdamW8bit", "Lion", "Muon",
    "Optimizer", "constant", "cosine", "linear", "Plan", "plan", "Session", "Step", "DataLoader", "Trainer", "TrainOutput",
    "TrainingArguments", "generate", "PlimsollError", "SettingError", "DataError", "DoesNotFit", "Diverged", "UnsupportedOp",
    "InternalError",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LATER:
        found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "__version__":
        from . import _native

        return _native.library().pls_version().decode()
    from .errors import nearest

    raise AttributeError(f"module 'plimsoll' has no attribute {name!r}; {nearest(name, __all__)}")


def __dir__() -> List[str]:
    return [*__all__, *_MODULES, "__version__"]
