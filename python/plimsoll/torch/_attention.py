"""Attention in PyTorch's layout. Causal and sliding-window masks become attributes of the op `attention`; with any other mask
attention is composed of matmul and softmax."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import torch

from .. import functional as f
from .._values import Value

_LOWEST = torch.finfo(torch.float32).min


def is_boolean(node: Any) -> bool:
    """Whether a node of the graph is a boolean tensor; its value here is a number, 0 where it is False."""
    return isinstance(node, torch.fx.Node) and node.meta["val"].dtype is torch.bool


def attention(c: Any, q: Value, k: Value, v: Value, mask: Any, dropout: float, causal: bool, scale: Optional[float],
              selects: bool) -> Value:
    """softmax(q kᵀ · scale + mask) v for q, k, v [batch, heads, tokens, dim]; a mask that `selects` is not added: it is 0
    where a token must not attend."""
    kind: Optional[Tuple[bool, int]] = (causal, 0)
    if mask is not None:
        kind = _known(mask, q.shape[-2], k.shape[-2]) if isinstance(mask, torch.Tensor) else None
    if kind is None or (q.shape[-2] != k.shape[-2] and kind[0]) or q.shape[-1] != v.shape[-1]:
        return _written_out(c, q, k, v, mask, dropout, causal, scale, selects)
    swapped = [c.swapped.get(x.id) for x in (q, k, v)]
    if all(known is not None and known[0] == (1, 2) for known in swapped):
        straight = [known[1] for known in swapped]
        result = f.attention(straight[0], straight[1], straight[2], kind[0], scale=scale, dropout=dropout, layout="bthd",
                             window=kind[1])
        return c.swap(result, 1, 2)  # type: ignore[no-any-return]
    return f.attention(q, k, v, kind[0], scale=scale, dropout=dropout, window=kind[1])


def _known(mask: torch.Tensor, rows: int, columns: int) -> Optional[Tuple[bool, int]]:
    """(causal, window) if the mask is a causal or sliding-window mask for every sequence and head; else None."""
    if mask.dtype is torch.bool:
        allowed = mask
    elif bool(((mask == 0) | (mask <= _LOWEST / 2)).all()):
        allowed = mask == 0
    else:
        return None
    allowed = allowed.expand(*allowed.shape[:-2], rows, columns).reshape(-1, rows, columns)
    if not bool((allowed == allowed[:1]).all()):
        return None
    one = allowed[0]
    if bool(one.all()):
        return False, 0
    if rows != columns:
        return None
    below = torch.ones_like(one).tril()
    if torch.equal(one, below):
        return True, 0
    window = int(one[-1].sum())
    return (True, window) if torch.equal(one, below & ~below.tril(-window)) else None


def _written_out(c: Any, q: Value, k: Value, v: Value, mask: Any, dropout: float, causal: bool, scale: Optional[float],
                 selects: bool) -> Value:
    group = q.shape[1] // k.shape[1]
    k, v = _repeated(k, group), _repeated(v, group)
    scores = f.matmul(q, f.transpose(k, -2, -1)) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    if isinstance(mask, torch.Tensor) and mask.dtype is torch.bool:
        scores = scores + c.value(torch.where(mask, 0.0, _LOWEST))
    elif isinstance(mask, torch.Tensor):
        scores = scores + c.value(mask.clamp(min=_LOWEST))
    elif mask is not None:
        scores = f.where(mask, scores, _LOWEST) if selects else scores + mask
    shares = f.softmax(scores, -1)
    return f.matmul(f.dropout(shares, dropout) if dropout else shares, v)


def _repeated(x: Value, group: int) -> Value:
    if group == 1:
        return x
    b, h, t, d = x.shape
    return f.reshape(f.expand(f.reshape(x, b, h, 1, t, d), b, h, group, t, d), b, h * group, t, d)
