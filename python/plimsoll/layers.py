"""Layers: modules with parameters, named and initialised as PyTorch's. ``[…]`` stands for any leading axes."""
from __future__ import annotations

from typing import Any, Optional

from . import functional as f
from ._module import Module, Parameter, _size, uniform_fan_in
from ._values import Value
from .errors import SettingError

#: default eps of ``RMSNorm``: the machine epsilon of float32, as in PyTorch
RMS_NORM_EPS = 1.1920928955078125e-07


class Linear(Module):
    """``x @ weight.T + bias``.

    Shapes: x […, in_features] → […, out_features]; weight [out_features, in_features], bias [out_features].
    Both are initialised uniformly within ±1/√in_features.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features = _size("Linear", "in_features", in_features)
        self.out_features = _size("Linear", "out_features", out_features)
        self.weight = uniform_fan_in((self.out_features, self.in_features), self.in_features)
        self.bias: Optional[Parameter] = uniform_fan_in((self.out_features,), self.in_features) if bias else None

    def forward(self, x: Any) -> Value:
        """x […, in_features] → […, out_features]."""
        return f.linear(x, self.weight, self.bias)

    def __repr__(self) -> str:
        return f"Linear({self.in_features}, {self.out_features}, bias={self.bias is not None})"


class Embedding(Module):
    """Looks up rows of a table.

    Shapes: ids […] int32 → […, dim]; weight [rows, dim], initialised from a standard normal distribution.

    :param padding_idx: a row whose gradient is zero.
    """

    def __init__(self, rows: int, dim: int, padding_idx: Optional[int] = None) -> None:
        self.rows, self.dim, self.padding_idx = _size("Embedding", "rows", rows), _size("Embedding", "dim", dim), padding_idx
        if padding_idx is not None and not -self.rows <= padding_idx < self.rows:
            raise SettingError(f"Embedding: padding_idx is {padding_idx} and there are {self.rows} rows")
        self.weight = Parameter((self.rows, self.dim), "normal", 1.0, kind="embedding")

    def forward(self, ids: Any) -> Value:
        """ids […] → […, dim]."""
        return f.embedding(ids, self.weight, self.padding_idx)

    def __repr__(self) -> str:
        return f"Embedding({self.rows}, {self.dim})"


class RMSNorm(Module):
    """``x / sqrt(mean(x²) + eps) * weight`` over the last axis.

    Shapes: x […, dim] → […, dim]; weight [dim], initialised to ones.
    """

    def __init__(self, dim: int, eps: Optional[float] = None) -> None:
        self.dim, self.eps = _size("RMSNorm", "dim", dim), RMS_NORM_EPS if eps is None else float(eps)
        self.weight = Parameter((self.dim,), "ones")

    def forward(self, x: Any) -> Value:
        """x […, dim] → […, dim]."""
        return f.rms_norm(x, self.weight, self.eps)

    def __repr__(self) -> str:
        return f"RMSNorm({self.dim}, eps={self.eps:g})"


class LayerNorm(Module):
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axis.

    Shapes: x […, dim] → […, dim]; weight [dim] is initialised to ones, bias [dim] to zeros.
    """

    def __init__(self, dim: int, eps: float = 1e-5, bias: bool = True) -> None:
        self.dim, self.eps = _size("LayerNorm", "dim", dim), float(eps)
        self.weight = Parameter((self.dim,), "ones")
        self.bias: Optional[Parameter] = Parameter((self.dim,), "zeros") if bias else None

    def forward(self, x: Any) -> Value:
        """x […, dim] → […, dim]."""
        return f.layer_norm(x, self.weight, self.bias, self.eps)

    def __repr__(self) -> str:
        return f"LayerNorm({self.dim}, eps={self.eps:g})"


class Dropout(Module):
    """While training, elements become 0 with probability ``p`` and the others are divided by 1 - p. In ``evaluate``, and
    after ``eval()``, it does nothing. What is dropped depends on the session's seed and the step."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = f.probability("Dropout", p)

    def forward(self, x: Any) -> Value:
        """x → the same shape."""
        return f.dropout(x, self.p if self.training else 0.0)

    def __repr__(self) -> str:
        return f"Dropout({self.p:g})"
