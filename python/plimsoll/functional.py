"""Functions on values. Each appends an op to the step that is being planned and returns its result.

The operands of an elementwise function broadcast as in numpy, and one of two may be a number.
``dim`` counts from 0, or from the last axis with -1; ``axis`` is a synonym. ``[…]`` stands for any leading axes.
"""
from __future__ import annotations

import math
import numbers
import sys
from typing import Any, List, Optional

from . import _values
from ._images import adaptive_avg_pool2d, avg_pool2d, batch_norm, conv1d, conv2d, group_norm, max_pool2d
from ._shapes import (arange, axis_of, cat, chunk, expand, flatten, flip, full, gather, index, index_select, numpy_words, ones,
                      permute, reshape, split, squeeze, stack, transpose, unsqueeze, zeros)
from ._trace import append, operand
from ._values import Axes, Value
from .errors import SettingError

__all__ = ["abs", "adaptive_avg_pool2d", "add", "arange", "attention", "avg_pool2d", "batch_norm",
           "binary_cross_entropy_with_logits", "cast", "cat", "chunk", "clamp", "conv1d", "conv2d", "cross_entropy",
           "detach", "div", "dropout", "embedding", "eq", "exp", "expand", "flatten", "flip", "full", "gather", "ge", "gelu",
           "group_norm", "gt", "index", "index_select", "layer_norm", "le", "linear", "log", "log_softmax", "lt", "matmul", "max", "max_pool2d", "maximum",
           "mean", "minimum", "mse", "mul", "ne", "neg", "ones", "permute", "pow", "relu", "reshape", "rms_norm", "rsqrt",
           "sigmoid", "silu", "softmax", "split", "sqrt", "square", "squeeze", "stack", "sub", "sum", "tanh", "transpose",
           "unsqueeze", "value", "where", "zeros"]


def value(x: Any) -> Value:
    """A parameter, or an array (which becomes a constant of the step), as a value. Values stay as they are."""
    return operand(x)


def probability(what: str, p: Any) -> float:
    """A probability below 1. Errors: SettingError."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0.0 <= p < 1.0:
        raise SettingError(f"{what}: p is {p!r}, expected a number from 0 to below 1")
    return float(p)


# ---- element by element --------------------------------------------------------------------------------------------


def _number(x: Any) -> Optional[float]:
    if isinstance(x, numbers.Real) or (getattr(x, "shape", None) == () and hasattr(x, "item") and not isinstance(x, Value)):
        number = float(x)
        if math.isnan(number) or math.isinf(number):
            raise SettingError(f"{x!r} is not a finite number", "masks take a large number, such as -1e9, or where()")
        return number
    return None


def _binary(op: str, a: Any, b: Any) -> Value:
    left, right = _number(a), _number(b)
    if left is not None and right is not None:
        raise SettingError(f"{op}: both operands are numbers, at least one must be a value")
    if right is not None:
        return append(op, [a], scalar=right)
    if left is not None:
        return append(op, [b], scalar=left, reverse=True)
    return append(op, [a, b])


def add(a: Any, b: Any) -> Value:
    """a + b."""
    return _binary("add", a, b)


def sub(a: Any, b: Any) -> Value:
    """a - b."""
    return _binary("sub", a, b)


def mul(a: Any, b: Any) -> Value:
    """a * b."""
    return _binary("mul", a, b)


def div(a: Any, b: Any) -> Value:
    """a / b."""
    return _binary("div", a, b)


def pow(a: Any, b: Any) -> Value:
    """a to the power of b."""
    return _binary("pow", a, b)


def maximum(a: Any, b: Any) -> Value:
    """The larger of a and b."""
    return _binary("maximum", a, b)


def minimum(a: Any, b: Any) -> Value:
    """The smaller of a and b."""
    return _binary("minimum", a, b)


def eq(a: Any, b: Any) -> Value:
    """1.0 where a equals b, else 0.0."""
    return _binary("eq", a, b)


def ne(a: Any, b: Any) -> Value:
    """1.0 where a differs from b, else 0.0."""
    return _binary("ne", a, b)


def lt(a: Any, b: Any) -> Value:
    """1.0 where a < b, else 0.0."""
    return _binary("lt", a, b)


def le(a: Any, b: Any) -> Value:
    """1.0 where a <= b, else 0.0."""
    return _binary("le", a, b)


def gt(a: Any, b: Any) -> Value:
    """1.0 where a > b, else 0.0."""
    return _binary("gt", a, b)


def ge(a: Any, b: Any) -> Value:
    """1.0 where a >= b, else 0.0."""
    return _binary("ge", a, b)


def clamp(x: Any, min: Optional[float] = None, max: Optional[float] = None) -> Value:
    """x, not below ``min`` and not above ``max``."""
    return append("clamp", [x], min=min, max=max)


def where(condition: Any, a: Any, b: Any) -> Value:
    """a where the condition is not 0, else b; either may be a number."""
    return append("where", [condition, *(x if _number(x) is None else full([1], _number(x)) for x in (a, b))])


def neg(x: Any) -> Value:
    """-x."""
    return append("neg", [x])


def exp(x: Any) -> Value:
    """e to the power of x."""
    return append("exp", [x])


def log(x: Any) -> Value:
    """The natural logarithm."""
    return append("log", [x])


def sqrt(x: Any) -> Value:
    """The square root."""
    return append("sqrt", [x])


def rsqrt(x: Any) -> Value:
    """1 / sqrt(x)."""
    return append("rsqrt", [x])


def abs(x: Any) -> Value:
    """The absolute value of x."""
    return append("abs", [x])


def square(x: Any) -> Value:
    """x * x."""
    return append("square", [x])


def tanh(x: Any) -> Value:
    """The hyperbolic tangent."""
    return append("tanh", [x])


def sigmoid(x: Any) -> Value:
    """1 / (1 + e^-x)."""
    return append("sigmoid", [x])


def relu(x: Any) -> Value:
    """The larger of x and 0."""
    return append("relu", [x])


def silu(x: Any) -> Value:
    """x * sigmoid(x)."""
    return append("silu", [x])


def gelu(x: Any, approximate: str = "none") -> Value:
    """x * Φ(x), exactly (by erf), or with ``approximate="tanh"`` by the formula with tanh."""
    if approximate not in ("none", "tanh"):
        raise SettingError(f"gelu: approximate is {approximate!r}", "one of none, tanh")
    return append("gelu", [x], approximate=approximate)


def dropout(x: Any, p: float = 0.5) -> Value:
    """While training, elements become 0 with probability p and the others are divided by 1 - p."""
    return append("dropout", [x], p=probability("dropout", p)) if p else operand(x)


def cast(x: Any, dtype: str) -> Value:
    """The same numbers as "float32", "bfloat16" or "float16"."""
    return append("cast", [x], dtype=dtype)


def detach(x: Any) -> Value:
    """The same numbers, through which no gradient flows."""
    return append("detach", [x])


# ---- reductions ----------------------------------------------------------------------------------------------------


def _axes(x: Value, dim: Axes) -> Optional[List[int]]:
    if dim is None:
        return None
    return [axis_of(x, a) for a in ([dim] if isinstance(dim, int) else dim)]


def _reduced(op: str, x: Any, dim: Axes, keepdim: bool) -> Value:
    x = operand(x)
    return append(op, [x], axes=_axes(x, dim), keepdims=bool(keepdim))


@numpy_words
def sum(x: Any, dim: Axes = None, keepdim: bool = False) -> Value:
    """The sum over all axes, or over some."""
    return _reduced("sum", x, dim, keepdim)


@numpy_words
def mean(x: Any, dim: Axes = None, keepdim: bool = False) -> Value:
    """The mean over all axes, or over some."""
    return _reduced("mean", x, dim, keepdim)


@numpy_words
def max(x: Any, dim: Axes = None, keepdim: bool = False) -> Value:
    """The maximum over all axes, or over some, as ``torch.amax``."""
    return _reduced("max", x, dim, keepdim)


@numpy_words
def softmax(x: Any, dim: int = -1) -> Value:
    """Exponentials that add up to 1 along an axis."""
    x = operand(x)
    return append("softmax", [x], axis=axis_of(x, dim))


@numpy_words
def log_softmax(x: Any, dim: int = -1) -> Value:
    """The logarithm of softmax."""
    x = operand(x)
    return append("log_softmax", [x], axis=axis_of(x, dim))


# ---- products ------------------------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Value:
    """The matrix product over the last two axes, as ``torch.matmul``: a […, n, k], b […, k, m] → […, n, m]."""
    return append("matmul", [a, b])


def linear(x: Any, weight: Any, bias: Any = None) -> Value:
    """x […, in], weight [out, in], bias [out] → […, out]."""
    return append("linear", [x, weight, bias])


def embedding(ids: Any, weight: Any, padding_idx: Optional[int] = None) -> Value:
    """Rows of weight [rows, dim] by ids […] int32 → […, dim]."""
    return append("embedding", [weight, ids], padding_idx=padding_idx)


def rms_norm(x: Any, weight: Any, eps: float = 1.1920928955078125e-07) -> Value:
    """x […, dim], weight [dim] → […, dim]: x / sqrt(mean(x²) + eps) * weight."""
    return append("rms_norm", [x, weight], eps=float(eps))


def layer_norm(x: Any, weight: Any, bias: Any = None, eps: float = 1e-5) -> Value:
    """x […, dim], weight [dim], bias [dim] → […, dim]: mean 0 and variance 1, then weight and bias."""
    weight = operand(weight)
    return append("layer_norm", [x, weight, zeros(weight.shape) if bias is None else bias], eps=float(eps))


def attention(q: Any, k: Any, v: Any, causal: Optional[bool] = None, *, is_causal: Optional[bool] = None,
              scale: Optional[float] = None, dropout: float = 0.0, layout: str = "bhtd", window: int = 0) -> Value:
    """softmax(q kᵀ · scale) v for each head, without keeping the scores of all tokens in memory.

    :param q: [batch, heads, tokens, dim] as in PyTorch, or [batch, tokens, heads, dim] with ``layout="bthd"``.
    :param k: as q; it may have fewer heads, each shared by a group of q's heads (grouped-query attention).
    :param causal: a token attends to itself and to earlier tokens only. ``is_causal`` is a synonym.
    :param scale: 1/√dim unless given.
    :param window: sliding-window attention: the number of tokens that a token attends to, itself included; 0: all.
    """
    if layout not in ("bhtd", "bthd"):
        raise SettingError(f"attention: layout is {layout!r}",
                           "bhtd: [batch, heads, tokens, dim]; bthd: [batch, tokens, heads, dim]")
    masked = bool(causal if causal is not None else is_causal)
    return append("attention", [q, k, v], causal=masked, layout=layout, scale=scale,
                  dropout=probability("attention", dropout), window=window or None)


# ---- losses --------------------------------------------------------------------------------------------------------


def cross_entropy(logits: Any, labels: Any, ignore_index: int = -100) -> Value:
    """The mean of -log softmax(logits)[label] over all labels but ``ignore_index``, which can only be -100.

    Shapes: logits […, classes], labels […] int32 → one number. Labels are not shifted: a language model shifts them itself.
    """
    return append("cross_entropy", [logits, labels], ignore_index=int(ignore_index))


def mse(a: Any, b: Any) -> Value:
    """The mean of (a - b)² over all elements."""
    return append("mse", [a, b])


def binary_cross_entropy_with_logits(logits: Any, labels: Any) -> Value:
    """The mean binary cross-entropy over all elements; labels are from 0 to 1, float32 of the logits' shape."""
    return append("bce_with_logits", [logits, labels])


setattr(_values, "f", sys.modules[__name__])
