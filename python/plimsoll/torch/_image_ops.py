"""PyTorch's ops on images, on values: convolutions, pooling, and the norms of channels."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from .. import functional as f
from .._values import Value
from ..errors import UnsupportedOp
from ._ops import OPS, Context, op, op_name

_VIEWS = {"view", "reshape", "flatten", "_unsafe_view"}


def _two(given: Any) -> Tuple[int, int]:
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    return int(numbers[0]), int(numbers[-1])


def cuts_patches(node: Any) -> bool:
    """Whether a convolution's windows touch without an overlap and its pixels become rows at once, as vision transformers
    cut patches: it is a linear layer."""
    arguments = dict(zip(("input", "weight", "bias", "stride", "padding", "dilation", "groups"), node.args)) | dict(node.kwargs)
    weight, image = arguments["weight"].meta["val"], arguments["input"].meta["val"]
    if _two(arguments.get("stride", 1)) != tuple(weight.shape[2:]) or arguments.get("padding", 0) not in (0, [0, 0], (0, 0)):
        return False
    if _two(arguments.get("dilation", 1)) != (1, 1) or arguments.get("groups", 1) != 1:
        return False
    if image.shape[2] % weight.shape[2] or image.shape[3] % weight.shape[3]:
        return False
    return all(op_name(user.target) in _VIEWS for user in node.users)


@op("conv2d")
def _conv2d(c: Context, node: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1) -> Value:
    x, weight, bias = c.value(x), c.value(weight), None if bias is None else c.value(bias)
    if cuts_patches(node):
        return _patches(c, x, weight, bias)
    return f.conv2d(x, weight, bias, _two(stride), padding if isinstance(padding, str) else _two(padding), _two(dilation), groups)


def _patches(c: Context, x: Value, weight: Value, bias: Optional[Value]) -> Value:
    out, channels, kh, kw = weight.shape
    b, _, h, w = x.shape
    cut = f.reshape(x, b, channels, h // kh, kh, w // kw, kw)
    rows = f.reshape(f.permute(cut, 0, 2, 4, 1, 3, 5), b, (h // kh) * (w // kw), channels * kh * kw)
    patches = f.linear(rows, f.reshape(weight, out, channels * kh * kw), bias)
    return f.reshape(c.swap(patches, 1, 2), b, out, h // kh, w // kw)


@op("conv1d")
def _conv1d(c: Context, node: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
            groups: int = 1) -> Value:
    return f.conv1d(c.value(x), c.value(weight), None if bias is None else c.value(bias), stride, padding, dilation, groups)


def _covers(size: int, kernel: int, stride: int, padding: int) -> bool:
    """Whether windows end with the image, so that rounding their number up or down is the same."""
    return (size + 2 * padding - kernel) % stride == 0


def _window(x: Value, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> Tuple[Any, Any, Any]:
    sizes = _two(kernel)
    steps = sizes if stride is None or stride == [] else _two(stride)
    around = _two(padding)
    if ceil_mode and not all(_covers(*axis) for axis in zip(x.shape[-2:], sizes, steps, around)):
        raise UnsupportedOp("pooling with ceil_mode, where windows reach beyond the image")
    return sizes, steps, around


@op("max_pool2d", "max_pool2d_with_indices")
def _max_pool2d(c: Context, node: Any, x: Any, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                ceil_mode: bool = False) -> Value:
    if _two(dilation) != (1, 1):
        raise UnsupportedOp("max_pool2d with dilation")
    if op_name(node.target) == "max_pool2d_with_indices" and any(user.args[1:] != (0,) for user in node.users):
        raise UnsupportedOp("the indices of max_pool2d")
    return f.max_pool2d(x, *_window(x, kernel, stride, padding, ceil_mode))


@op("avg_pool2d")
def _avg_pool2d(c: Context, node: Any, x: Any, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                count_include_pad: bool = True, divisor_override: Optional[int] = None) -> Value:
    if divisor_override is not None:
        raise UnsupportedOp("avg_pool2d with a divisor")
    return f.avg_pool2d(x, *_window(x, kernel, stride, padding, ceil_mode), count_include_pad=count_include_pad)


@op("adaptive_avg_pool2d")
def _adaptive_avg_pool2d(c: Context, node: Any, x: Any, size: Sequence[Any]) -> Value:
    return f.adaptive_avg_pool2d(x, list(size))


@op("batch_norm")
def _batch_norm(c: Context, node: Any, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float,
                eps: float, *others: Any) -> Value:
    weight, bias, mean, variance = (None if item is None else c.value(item) for item in (weight, bias, mean, variance))
    return f.batch_norm(c.value(x), mean, variance, weight, bias, training, momentum, eps)


@op("group_norm")
def _group_norm(c: Context, node: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
                *others: Any) -> Value:
    weight, bias = (None if item is None else c.value(item) for item in (weight, bias))
    return f.group_norm(c.value(x), groups, weight, bias, eps)


OPS["relu6"] = lambda c, node, x: f.clamp(x, 0.0, 6.0)
OPS["hardtanh"] = lambda c, node, x, lowest=-1.0, highest=1.0: f.clamp(x, lowest, highest)
OPS["hardsigmoid"] = lambda c, node, x: f.clamp(x + 3.0, 0.0, 6.0) * (1 / 6)
OPS["hardswish"] = lambda c, node, x: x * f.clamp(x + 3.0, 0.0, 6.0) * (1 / 6)
OPS["leaky_relu"] = lambda c, node, x, slope=0.01: f.maximum(x, 0.0) + f.minimum(x, 0.0) * slope
