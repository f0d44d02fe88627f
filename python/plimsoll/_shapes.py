"""Functions on values that change shapes, choose elements or make constants; `functional` exports them."""
from __future__ import annotations

import functools
import math
from typing import Any, Callable, List, Optional, Sequence, Tuple, TypeVar, Union, cast

from ._trace import append, current, operand
from ._values import Value
from .errors import SettingError


Function = TypeVar("Function", bound=Callable[..., Any])


def numpy_words(function: Function) -> Function:
    """Accepts numpy's names `axis` and `keepdims` for `dim` and `keepdim`, as PyTorch does."""

    @functools.wraps(function)
    def renamed(*args: Any, **named: Any) -> Any:
        for theirs, ours in (("axis", "dim"), ("keepdims", "keepdim")):
            if theirs in named:
                named[ours] = named.pop(theirs)
        return function(*args, **named)

    return cast(Function, renamed)


def axis_of(x: Value, dim: Any) -> int:
    """The axis, counted from 0. Errors: SettingError if the value has no such axis."""
    if not hasattr(dim, "__index__") or not -x.ndim <= int(dim) < x.ndim:
        raise SettingError(f"dim {dim!r} of a value of shape {list(x.shape)}",
                           f"axes go from {-x.ndim} to {x.ndim - 1}")
    return int(dim) % x.ndim


def integers(items: Any) -> List[int]:
    """Errors: SettingError where one is no integer; 2.5 is not cut down to 2."""
    for item in items:
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            raise SettingError(f"{item!r} is not an integer", "sizes and axes are integers: n // 2, not n / 2")
    return [int(item) for item in items]


def _integers(args: Tuple[Any, ...]) -> List[int]:
    return integers(args[0] if len(args) == 1 and hasattr(args[0], "__iter__") else args)


def reshape(x: Any, *shape: Any) -> Value:
    """The same elements in another shape, one of whose sizes may be -1."""
    return append("reshape", [x], shape=_integers(shape))


def permute(x: Any, *axes: Any) -> Value:
    """The axes in another order: ``permute(x, 0, 2, 1)``."""
    x = operand(x)
    return append("permute", [x], axes=[axis_of(x, axis) for axis in _integers(axes)])


def transpose(x: Any, dim0: int, dim1: int) -> Value:
    """Swaps two axes."""
    x = operand(x)
    return append("transpose", [x], axis0=axis_of(x, dim0), axis1=axis_of(x, dim1))


def flatten(x: Any, start: int = 0, end: int = -1) -> Value:
    """The axes from ``start`` to ``end`` as one."""
    x = operand(x)
    first, last = axis_of(x, start), axis_of(x, end)
    return reshape(x, [*x.shape[:first], math.prod(x.shape[first:last + 1]), *x.shape[last + 1:]])


def unsqueeze(x: Any, dim: int) -> Value:
    """A new axis of size 1 before ``dim``."""
    x = operand(x)
    if not hasattr(dim, "__index__") or not -x.ndim - 1 <= int(dim) <= x.ndim:
        raise SettingError(f"unsqueeze: dim {dim!r} of a value of shape {list(x.shape)}",
                           f"the new axis is from {-x.ndim - 1} to {x.ndim}")
    at = int(dim) % (x.ndim + 1)
    return reshape(x, [*x.shape[:at], 1, *x.shape[at:]])


def squeeze(x: Any, dim: int) -> Value:
    """Without the axis, whose size is 1."""
    x = operand(x)
    at = axis_of(x, dim)
    if x.shape[at] != 1:
        raise SettingError(f"squeeze: dim {dim} of {list(x.shape)} is {x.shape[at]} long, not 1")
    return reshape(x, [*x.shape[:at], *x.shape[at + 1:]])


def expand(x: Any, *shape: Any) -> Value:
    """Axes of size 1 repeated to ``shape``; -1 leaves a size as it is, further axes come in front."""
    x = operand(x)
    wanted = _integers(shape)
    skipped = len(wanted) - x.ndim
    sizes = [x.shape[i - skipped] if size == -1 and i >= skipped else size for i, size in enumerate(wanted)]
    return append("expand", [x], shape=sizes)


@numpy_words
def cat(values: Sequence[Any], dim: int = 0) -> Value:
    """Concatenates values along an axis."""
    items = [operand(item) for item in values]
    if not items:
        raise SettingError("cat: the list of values is empty")
    return append("concat", items, axis=axis_of(items[0], dim)) if len(items) > 1 else items[0]


@numpy_words
def stack(values: Sequence[Any], dim: int = 0) -> Value:
    """Stacks values along a new axis."""
    return cat([unsqueeze(item, dim) for item in values], dim)


@numpy_words
def split(x: Any, sizes: Union[int, Sequence[int]], dim: int = 0) -> List[Value]:
    """Splits along an axis into parts of one size (the last may be smaller), or of the given sizes."""
    x = operand(x)
    at = axis_of(x, dim)
    if isinstance(sizes, int):
        size, total = sizes, x.shape[at]
        if size < 1:
            raise SettingError(f"split: the size is {size}")
        parts = [min(size, total - first) for first in range(0, total, size)]
    else:
        parts = integers(sizes)
    return [x] if len(parts) == 1 else current().op("split", [x], {"sizes": parts, "axis": at}, len(parts))


@numpy_words
def chunk(x: Any, chunks: int, dim: int = 0) -> List[Value]:
    """Splits along an axis into ``chunks`` equal parts."""
    x = operand(x)
    size = x.shape[axis_of(x, dim)]
    if chunks < 1 or size % chunks:
        raise SettingError(f"chunk: dim {dim} of {list(x.shape)} cannot be split into {chunks} equal parts")
    return split(x, size // chunks, dim)


def index(x: Any, at: Any) -> Value:
    """``x[at]`` with integers, slices, ``...`` and ``None``. To index with a value, use ``index_select``."""
    x = operand(x)
    items = list(at) if isinstance(at, tuple) else [at]
    named = [item for item in items if item is not None and item is not Ellipsis]
    if len(named) > x.ndim:
        raise SettingError(f"{len(named)} indices for a value of shape {list(x.shape)}")
    rest = [slice(None)] * (x.ndim - len(named))
    where_rest = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    items = [*items[:where_rest], *rest, *items[where_rest + 1:]]
    shape: List[int] = []
    axis = 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        x = _sliced(x, axis, item)
        if isinstance(item, slice):
            shape.append(x.shape[axis])
        axis += 1
    return x if tuple(shape) == x.shape else reshape(x, shape)


def _sliced(x: Value, axis: int, item: Any) -> Value:
    size = x.shape[axis]
    if isinstance(item, slice):
        first, last, step = item.indices(size)
        if step < 1 or last <= first:
            raise SettingError(f"the slice {item.start}:{item.stop}:{item.step} of an axis of {size} is empty or backward")
        if (first, last, step) == (0, size, 1):
            return x
    elif hasattr(item, "__index__") and not isinstance(item, bool):
        if not -size <= int(item) < size:
            raise SettingError(f"index {int(item)} of an axis of {size}")
        first, step = int(item) % size, 1
        last = first + 1
    else:
        raise SettingError(f"a {type(item).__name__} cannot be an index", "to index with a value, use index_select(x, dim, ids)")
    return append("slice", [x], axis=axis, start=first, end=last, step=step)


def gather(x: Any, dim: int, index: Any) -> Value:
    """Elements along an axis by an int32 value of the result's shape, as ``torch.gather``."""
    x = operand(x)
    return append("gather", [x, index], axis=axis_of(x, dim))


def index_select(x: Any, dim: int, index: Any) -> Value:
    """Rows along an axis by int32 indices [n], as ``torch.index_select``."""
    x = operand(x)
    return append("index_select", [x, index], axis=axis_of(x, dim))


def flip(x: Any, dim: int) -> Value:
    """Reverses the order of the elements along an axis."""
    x = operand(x)
    return append("flip", [x], axis=axis_of(x, dim))


# ---- constants -----------------------------------------------------------------------------------------------------


def full(shape: Sequence[int], fill: Any) -> Value:
    """A float32 tensor filled with one number."""
    return append("full", [], shape=integers(shape), value=float(fill))


def zeros(shape: Sequence[int]) -> Value:
    """A float32 tensor of zeros."""
    return full(shape, 0.0)


def ones(shape: Sequence[int]) -> Value:
    """A float32 tensor of ones."""
    return full(shape, 1.0)


def arange(start: float, end: Optional[float] = None, step: float = 1, dtype: str = "int32") -> Value:
    """``start``, ``start + step``, … below ``end``, as ``torch.arange``; with one argument: from 0 up to it, exclusive."""
    first, last = (0, start) if end is None else (start, end)
    return append("arange", [], start=first, end=last, step=step, dtype=dtype)
