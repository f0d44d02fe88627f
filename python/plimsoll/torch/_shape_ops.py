"""PyTorch's ops that change shapes or choose elements, on values."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from .. import functional as f
from .._values import Value
from ..errors import UnsupportedOp
from ._ops import OPS, Context, op, tensors


@op("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as")
def _view(c: Context, node: Any, x: Any, *others: Any, **options: Any) -> Value:
    shape = tuple(node.meta["val"].shape) or (1,)
    return f.value(x) if x.shape == shape else f.reshape(x, shape)


@op("transpose")
def _transpose(c: Context, node: Any, x: Any, first: int, second: int) -> Value:
    return c.swap(x, first, second)


@op("t", "numpy_T")
def _t(c: Context, node: Any, x: Any) -> Value:
    return c.swap(x, 0, 1) if x.ndim == 2 else x


@op("permute")
def _permute(c: Context, node: Any, x: Any, axes: Sequence[int]) -> Value:
    moved = [at for at, axis in enumerate(axes) if axis % x.ndim != at]
    return c.swap(x, *moved) if len(moved) == 2 else f.permute(x, axes)


@op("expand", "expand_as", "broadcast_to")
def _expand(c: Context, node: Any, x: Any, *others: Any, **options: Any) -> Value:
    shape = tuple(node.meta["val"].shape)
    return f.value(x) if x.shape == shape else f.expand(x, shape)


@op("broadcast_tensors")
def _broadcast(c: Context, node: Any, items: Sequence[Any]) -> List[Value]:
    return [item if item.shape == tuple(val.shape) else f.expand(item, val.shape)
            for item, val in zip(tensors(c, items), node.meta["val"])]


@op("repeat")
def _repeat(c: Context, node: Any, x: Any, times: Sequence[int]) -> Value:
    y: Value = f.reshape(x, [1] * (len(times) - x.ndim) + list(x.shape)) if len(times) > x.ndim else x
    for axis, count in enumerate(times):
        y = f.cat([y] * count, axis) if count > 1 else y
    return y


@op("slice")
def _slice(c: Context, node: Any, x: Any, dim: int = 0, start: Optional[int] = None, end: Optional[int] = None,
           step: int = 1) -> Value:
    return f.index(x, (slice(None),) * (dim % x.ndim) + (slice(start, end, step),))


@op("select")
def _select(c: Context, node: Any, x: Any, dim: int, index: int) -> Value:
    return f.index(x, (slice(None),) * (dim % x.ndim) + (index,))


@op("cat")
def _cat(c: Context, node: Any, items: Sequence[Any], dim: int = 0) -> Value:
    return f.cat([item for item in tensors(c, items) if item.numel() > 0], dim)


@op("stack")
def _stack(c: Context, node: Any, items: Sequence[Any], dim: int = 0) -> Value:
    return f.stack(tensors(c, items), dim)


@op("split", "split_with_sizes")
def _split(c: Context, node: Any, x: Any, sizes: Any, dim: int = 0) -> List[Value]:
    return f.split(x, sizes, dim)


@op("chunk")
def _chunk(c: Context, node: Any, x: Any, chunks: int, dim: int = 0) -> List[Value]:
    return f.split(x, -(-x.shape[dim] // chunks), dim)


@op("unbind")
def _unbind(c: Context, node: Any, x: Any, dim: int = 0) -> List[Value]:
    return [_select(c, node, x, dim, index) for index in range(x.shape[dim])]


@op("getitem")
def _getitem(c: Context, node: Any, items: Any, index: int) -> Any:
    return items[index] if isinstance(items, (list, tuple)) else items  # of an op of which only the first result is made


@op("pad", "constant_pad_nd")
def _pad(c: Context, node: Any, x: Any, padding: Sequence[int], *mode: Any, value: Any = 0) -> Value:
    if mode and mode[0] != "constant" and not isinstance(mode[0], (int, float)):
        raise UnsupportedOp(f"padding by {mode[0]}")
    fill = mode[-1] if mode and isinstance(mode[-1], (int, float)) else value or 0
    for at in range(0, len(padding), 2):
        axis = x.ndim - 1 - at // 2
        before, behind = padding[at], padding[at + 1]
        x = x[(slice(None),) * axis + (slice(max(0, -before), x.shape[axis] - max(0, -behind)),)]
        kind = torch.int32 if x.dtype == "int32" else torch.float32
        shape = list(x.shape)
        parts: List[Any] = [x]
        for size, place in ((before, 0), (behind, 2)):
            if size > 0:
                filled = torch.full([*shape[:axis], size, *shape[axis + 1:]], fill, dtype=kind)
                parts.insert(place, c.value(filled))
        x = f.cat(parts, axis) if len(parts) > 1 else x
    return x  # type: ignore[no-any-return]


@op("gather")
def _gather(c: Context, node: Any, x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Value:
    if isinstance(x, torch.Tensor) and not x.is_floating_point() and bool((x == x.flatten()[0]).all()):
        return c.value(torch.full(tuple(node.meta["val"].shape), int(x.flatten()[0]), dtype=torch.int32))
    return f.gather(c.value(x), dim, c.value(index))


@op("index_select")
def _index_select(c: Context, node: Any, x: Any, dim: int, index: Any) -> Value:
    return f.index_select(c.value(x), dim, c.value(index))


@op("index")
def _index(c: Context, node: Any, x: Any, indices: Sequence[Any]) -> Value:
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(given) != 1 or given[0][1].ndim != 1 or getattr(given[0][1], "dtype", None) is torch.bool:
        raise UnsupportedOp("indexing by several tensors, a mask, or a tensor of several axes")
    return f.index_select(c.value(x), given[0][0], c.value(given[0][1]))


@op("roll")
def _roll(c: Context, node: Any, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    if len(dims) != len(shifts):
        raise UnsupportedOp("roll of all axes as one")
    for shift, dim in zip(shifts, dims):
        at = -shift % x.shape[dim]
        if at:
            x = f.cat(f.split(x, [at, x.shape[dim] - at], dim)[::-1], dim)
    return f.value(x)


@op("flip")
def _flip(c: Context, node: Any, x: Any, dims: Sequence[int]) -> Value:
    for dim in dims:
        x = f.flip(x, dim)
    return x  # type: ignore[no-any-return]


OPS["narrow"] = lambda c, node, x, dim, start, length: _slice(c, node, x, dim, start, start + length)
