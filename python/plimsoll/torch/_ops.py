"""PyTorch's ops on values, by their names without overloads. Each function gets the context, the node and its arguments: at
least one is a value, the others may be tensors that PyTorch has computed."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar

import torch

from .. import functional as f
from .._trace import Trace
from .._values import Value
from ..errors import UnsupportedOp
from ._attention import attention, is_boolean

OPS: Dict[str, Callable[..., Any]] = {}
Function = TypeVar("Function", bound=Callable[..., Any])
_SHAPES_ALONE = {"zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty"}


class Context:
    """State that the ops of one import share."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        # by number: the value that two exchanged axes make of it, so that exchanging them twice is nothing
        self.swapped: Dict[int, Any] = {}

    @staticmethod
    def only_shape(name: str) -> bool:
        """Whether an op reads nothing but the shape of its operand."""
        return name in _SHAPES_ALONE

    def value(self, item: Any) -> Value:
        """A value of a value, a tensor or a number."""
        if isinstance(item, torch.Tensor):
            return self.trace.constant(item)
        return f.full([1], item) if isinstance(item, (int, float)) else f.value(item)

    def operand(self, item: Any) -> Any:
        """A value or, for a number or a tensor of one element, a number."""
        if isinstance(item, torch.Tensor):
            return item.item() if item.numel() == 1 and item.isfinite().all() else self.trace.constant(item)
        return item

    def swap(self, x: Value, first: int, second: int) -> Value:
        """Swaps two axes."""
        axes = tuple(sorted((first % x.ndim, second % x.ndim)))
        known = self.swapped.get(x.id)
        if known is not None and known[0] == axes:
            return known[1]  # type: ignore[no-any-return]
        result = f.transpose(x, *axes)
        self.swapped[result.id] = (axes, x)
        return result


def op_name(target: Any) -> str:
    """"aten.linear.default" as "linear", operator.getitem as "getitem"."""
    name = getattr(target, "__name__", str(target))
    if "." in str(target) and hasattr(target, "overloadpacket"):
        name = str(target.overloadpacket).rsplit(".", 1)[-1]
    return name


def op(*names: str) -> Callable[[Function], Function]:
    """Registers a function under these names."""

    def add(function: Function) -> Function:
        for name in names:
            OPS[name] = function
        return function

    return add


def _unary(name: str, function: Callable[[Any], Value]) -> None:
    OPS[name] = lambda c, node, x: function(x)


for _name in ("neg", "exp", "log", "sqrt", "rsqrt", "abs", "square", "tanh", "sigmoid", "relu", "silu"):
    _unary(_name, getattr(f, _name))


def _binary(name: str, function: Callable[[Any, Any], Value]) -> None:
    OPS[name] = lambda c, node, a, b: function(c.operand(a), c.operand(b))


for _name in ("mul", "div", "pow", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"):
    _binary(_name, getattr(f, _name))
OPS["true_divide"] = OPS["div"]


def _of_booleans(node: Any) -> None:
    if not all(is_boolean(above) for above in node.all_input_nodes):
        raise UnsupportedOp(f"{op_name(node.target)} of numbers, which are not booleans")


@op("logical_and", "bitwise_and", "__and__")
def _and(c: Context, node: Any, a: Any, b: Any) -> Value:
    _of_booleans(node)
    return f.mul(c.operand(a), c.operand(b))


@op("logical_or", "bitwise_or", "__or__")
def _or(c: Context, node: Any, a: Any, b: Any) -> Value:
    _of_booleans(node)
    return f.maximum(c.operand(a), c.operand(b))


@op("add")
def _add(c: Context, node: Any, a: Any, b: Any, alpha: float = 1) -> Value:
    return f.add(c.operand(a), c.operand(b) if alpha == 1 else c.operand(b) * alpha)


@op("sub")
def _sub(c: Context, node: Any, a: Any, b: Any, alpha: float = 1) -> Value:
    return f.sub(c.operand(a), c.operand(b) if alpha == 1 else c.operand(b) * alpha)


@op("rsub")
def _rsub(c: Context, node: Any, a: Any, b: Any, alpha: float = 1) -> Value:
    return _sub(c, node, b, a, alpha)


@op("logical_not")
def _not(c: Context, node: Any, x: Any) -> Value:
    return f.eq(x, 0)


@op("bitwise_not")
def _bitwise_not(c: Context, node: Any, x: Any) -> Value:
    _of_booleans(node)
    return f.eq(x, 0)


@op("where")
def _where(c: Context, node: Any, condition: Any, a: Any, b: Any) -> Value:
    return f.where(c.value(condition), c.value(a), c.value(b))


@op("masked_fill")
def _masked_fill(c: Context, node: Any, x: Any, mask: Any, fill: Any) -> Value:
    fill = fill.item() if isinstance(fill, torch.Tensor) else fill
    lowest = torch.finfo(torch.float32).min
    return f.where(c.value(mask), c.value(max(float(fill), lowest)), c.value(x))


@op("clamp", "clamp_min", "clamp_max")
def _clamp(c: Context, node: Any, x: Any, first: Optional[float] = None, second: Optional[float] = None,
           min: Optional[float] = None, max: Optional[float] = None) -> Value:
    if op_name(node.target) == "clamp_max":
        return f.clamp(x, None, first if max is None else max)
    return f.clamp(x, first if min is None else min, second if max is None else max)


@op("gelu")
def _gelu(c: Context, node: Any, x: Any, approximate: str = "none") -> Value:
    return f.gelu(x, approximate)


@op("dropout", "native_dropout")
def _dropout(c: Context, node: Any, x: Any, p: float, train: Optional[bool] = True) -> Value:
    return f.dropout(x, p) if train and p > 0 else f.value(x)


@op("bernoulli_", "bernoulli")
def _bernoulli(c: Context, node: Any, x: Any, p: Optional[float] = None, generator: Any = None) -> Value:
    """1 with probability p, else 0, drawn in each step; evaluations have p. So stochastic depth divides by p and keeps all."""
    if p is None and op_name(node.target) == "bernoulli_":
        p = 0.5
    if not isinstance(p, (int, float)) or not 0 < p <= 1:
        raise UnsupportedOp("bernoulli with a probability that is not a number above 0 and at most 1")
    ones = f.full(tuple(node.meta["val"].shape) or (1,), 1.0)
    return f.dropout(ones, 1.0 - p) * float(p) if p < 1 else ones


@op("feature_dropout")
def _feature_dropout(c: Context, node: Any, x: Any, p: float, train: bool) -> Value:
    if train and p > 0:
        raise UnsupportedOp("dropout of whole channels")
    return f.value(x)


@op("clone", "contiguous", "alias", "lift_fresh_copy")
def _same(c: Context, node: Any, x: Any, *others: Any, **options: Any) -> Value:
    return f.value(x)


@op("detach")
def _detach(c: Context, node: Any, x: Any) -> Value:
    return f.detach(x)


@op("to", "_to_copy", "type_as")
def _to(c: Context, node: Any, x: Any, *others: Any, **options: Any) -> Value:
    wanted = node.meta["val"].dtype
    if wanted is torch.bool:
        return f.value(x) if is_boolean(node.args[0]) else f.ne(x, 0)
    if wanted in (torch.float16, torch.bfloat16):
        return f.cast(x, str(wanted).removeprefix("torch."))
    if wanted.is_floating_point:
        return x if x.dtype == "float32" else f.cast(x, "float32") if x.dtype != "int32" else x * 1.0
    if x.dtype != "int32":
        raise UnsupportedOp(f"floats cannot become {wanted} here")
    return f.value(x)


# ---- products, norms, losses ---------------------------------------------------------------------------------------


@op("linear")
def _linear(c: Context, node: Any, x: Any, weight: Any, bias: Any = None) -> Value:
    return f.linear(c.value(x), c.value(weight), None if bias is None else c.value(bias))


@op("addmm")
def _addmm(c: Context, node: Any, bias: Any, x: Any, weight: Any, beta: float = 1, alpha: float = 1) -> Value:
    if beta != 1 or alpha != 1:
        raise UnsupportedOp("addmm with factors")
    return f.matmul(c.value(x), c.value(weight)) + c.value(bias)


@op("matmul", "mm", "bmm")
def _matmul(c: Context, node: Any, a: Any, b: Any) -> Value:
    return f.matmul(c.value(a), c.value(b))


@op("embedding")
def _embedding(c: Context, node: Any, weight: Any, ids: Any, padding_idx: int = -1, *others: Any) -> Value:
    return f.embedding(c.value(ids), c.value(weight), None if padding_idx < 0 else padding_idx)


@op("rms_norm")
def _rms_norm(c: Context, node: Any, x: Any, shape: Sequence[int], weight: Any = None, eps: Optional[float] = None) -> Value:
    if len(shape) != 1:
        raise UnsupportedOp(f"rms_norm over {len(shape)} axes")
    scale = c.value(torch.ones(shape[0]) if weight is None else weight)
    return f.rms_norm(x, scale, torch.finfo(torch.float32).eps if eps is None else eps)


@op("layer_norm", "native_layer_norm")
def _layer_norm(c: Context, node: Any, x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5,
                *others: Any) -> Value:
    if len(shape) != 1:
        raise UnsupportedOp(f"layer_norm over {len(shape)} axes")
    scale = c.value(torch.ones(shape[0]) if weight is None else weight)
    return f.layer_norm(x, scale, None if bias is None else c.value(bias), eps)


@op("scaled_dot_product_attention")
def _attention(c: Context, node: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False) -> Value:
    mask_node = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    return attention(c, c.value(q), c.value(k), c.value(v), attn_mask, dropout_p, is_causal, scale, is_boolean(mask_node))


@op("softmax", "_softmax")
def _softmax(c: Context, node: Any, x: Any, dim: int, *others: Any) -> Value:
    return f.softmax(x, dim)


@op("log_softmax", "_log_softmax")
def _log_softmax(c: Context, node: Any, x: Any, dim: int, *others: Any) -> Value:
    return f.log_softmax(x, dim)


@op("cross_entropy_loss")
def _cross_entropy(c: Context, node: Any, logits: Any, labels: Any, weight: Any = None, reduction: int = 1,
                   ignore_index: int = -100, label_smoothing: float = 0.0) -> Value:
    if weight is not None or reduction != 1 or label_smoothing or logits.ndim < 2:
        raise UnsupportedOp("cross_entropy with weights, a sum, or smoothing")
    if logits.ndim > 2:  # [batch, classes, ...]: a label for each pixel
        logits = f.permute(logits, 0, *range(2, logits.ndim), 1)
    return f.cross_entropy(logits, c.value(labels), ignore_index)


@op("mse_loss")
def _mse(c: Context, node: Any, a: Any, b: Any, reduction: int = 1) -> Value:
    if reduction == 1:
        return f.mse(c.value(a), c.value(b))
    squares = f.square(f.sub(c.value(a), c.value(b)))
    return f.sum(squares) if reduction == 2 else squares


@op("binary_cross_entropy_with_logits")
def _binary_cross_entropy(c: Context, node: Any, logits: Any, labels: Any, weight: Any = None, pos_weight: Any = None,
                          reduction: int = 1) -> Value:
    if weight is not None or pos_weight is not None or reduction != 1:
        raise UnsupportedOp("binary_cross_entropy_with_logits with weights or without the mean")
    return f.binary_cross_entropy_with_logits(logits, c.value(labels))


def _reduction(function: Callable[..., Value]) -> Callable[..., Value]:
    def reduced(c: Context, node: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
        return function(x, dim if dim != [] else None, keepdim)

    return reduced


for _name, _function in (("sum", f.sum), ("mean", f.mean), ("amax", f.max)):
    OPS[_name] = _reduction(_function)


def tensors(c: Context, items: Sequence[Any]) -> List[Value]:
    """Values of a list of values and tensors."""
    return [c.value(item) for item in items]


from . import _image_ops, _shape_ops  # noqa: E402,F401  (they register their ops)
