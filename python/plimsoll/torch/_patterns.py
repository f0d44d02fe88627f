"""Patterns of exported graphs that have an op of their own here.

    pow → mean → + eps → rsqrt ┐                   unsqueeze → expand → reshape ─► attention's k and v
              x ──────────────► mul ─► * weight                (repeated heads: the op repeats them itself)
    0.5 * x * (1 + tanh(√(2/π) * (x + 0.044715 * x³))) ─► gelu
"""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch

from .. import functional as f
from ._attention import attention, is_boolean
from ._ops import Context, op_name

_NOTHING = {"to", "_to_copy", "clone", "contiguous", "alias", "type_as"}


class Rewrite(NamedTuple):
    """What is emitted in a node's place, from the values of other nodes."""

    operands: List[Any]
    emit: Callable[[Context, List[Any]], Any]


def find(graph: Any) -> Dict[Any, Rewrite]:
    """The rewrites of a graph, by the node whose place they take."""
    found: Dict[Any, Rewrite] = {}
    for node in graph.nodes:
        if node.op == "call_function":
            name = op_name(node.target)
            rewrite = _MATCHES[name](node) if name in _MATCHES else None
            if rewrite is not None:
                found[node] = rewrite
    return found


def _is(node: Any, *names: str) -> bool:
    return isinstance(node, torch.fx.Node) and node.op == "call_function" and op_name(node.target) in names


def _through(node: Any) -> Any:
    """What a node is, behind copies and casts that change no number."""
    while _is(node, *_NOTHING) and node.args[0].meta["val"].dtype == node.meta["val"].dtype:
        node = node.args[0]
    return node


def _pair(node: Any) -> List[Any]:
    return [_through(argument) for argument in node.args[:2]]


def _rms_norm(node: Any) -> Optional[Rewrite]:
    """weight * (x * rsqrt(mean(x², -1) + eps)), where the weight has one axis."""
    for weight, normed in (_pair(node), _pair(node)[::-1]):
        if not _is(normed, "mul") or not isinstance(weight, torch.fx.Node) or weight.meta["val"].ndim != 1:
            continue
        for x, root in (_pair(normed), _pair(normed)[::-1]):
            eps = _eps_of(x, root)
            if eps is not None:
                return Rewrite([x, weight], _norm_by(eps))
    return None


def _norm_by(eps: float) -> Callable[[Context, List[Any]], Any]:
    return lambda c, v: f.rms_norm(v[0], c.value(v[1]), eps)


def _eps_of(x: Any, root: Any) -> Optional[float]:
    if not _is(root, "rsqrt") or not isinstance(x, torch.fx.Node):
        return None
    shifted = _through(root.args[0])
    if not _is(shifted, "add") or not isinstance(shifted.args[1], (int, float)):
        return None
    mean = _through(shifted.args[0])
    if not _is(mean, "mean") or list(mean.args[1]) not in ([-1], [x.meta["val"].ndim - 1]):
        return None
    square = _through(mean.args[0])
    if not _is(square, "pow") or square.args[1] != 2 or _through(square.args[0]) is not x:
        return None
    return float(shifted.args[1])


def _tanh_gelu(node: Any) -> Optional[Rewrite]:
    """0.5 * x * (1 + tanh(√(2/π) * (x + 0.044715 * x³)))."""
    half, one = _pair(node)
    x = _scaled(half, 0.5)
    if x is None or not _is(one, "add") or 1 not in one.args[:2]:
        return None
    tanh = _through(next((a for a in one.args[:2] if isinstance(a, torch.fx.Node)), None))
    inner = _scaled(_through(tanh.args[0]), math.sqrt(2 / math.pi)) if _is(tanh, "tanh") else None
    if inner is None or not _is(inner, "add") or x not in _pair(inner):
        return None
    left, right = _pair(inner)
    cube = _scaled(right if left is x else left, 0.044715)
    if cube is None or not _is(cube, "pow") or cube.args[1] != 3 or _through(cube.args[0]) is not x:
        return None
    return Rewrite([x], lambda c, v: f.gelu(v[0], "tanh"))


def _scaled(node: Any, factor: float) -> Any:
    """What is multiplied by that factor, or nothing."""
    if not _is(node, "mul"):
        return None
    numbers = [a for a in node.args[:2] if isinstance(a, (int, float))]
    if len(numbers) != 1 or abs(numbers[0] - factor) > 1e-9:
        return None
    return _through(next(a for a in node.args[:2] if isinstance(a, torch.fx.Node)))


def _repeated_heads(node: Any) -> Optional[Rewrite]:
    q, k, v = node.args[:3]
    few_k, few_v = _few_heads(k), _few_heads(v)
    if few_k is None or few_v is None or few_k.meta["val"].shape[1] != few_v.meta["val"].shape[1]:
        return None
    rest = dict(zip(("attn_mask", "dropout_p", "is_causal"), node.args[3:])) | dict(node.kwargs)
    mask = rest.get("attn_mask")
    operands = [q, few_k, few_v] + ([mask] if mask is not None else [])

    def emit(c: Context, v: List[Any]) -> Any:
        return attention(c, v[0], v[1], v[2], v[3] if len(v) > 3 else None, rest.get("dropout_p", 0.0),
                         rest.get("is_causal", False), rest.get("scale"), is_boolean(mask))

    return Rewrite(operands, emit)


def _few_heads(node: Any) -> Optional[Any]:
    """The heads [b, few, t, d] that unsqueeze, expand and reshape repeat."""
    shaped = _through(node)
    if not _is(shaped, "reshape", "view", "_unsafe_view"):
        return None
    expanded = _through(shaped.args[0])
    if not _is(expanded, "expand") or expanded.meta["val"].ndim != 5:
        return None
    source = _through(expanded.args[0])
    while _is(source, "slice", "unsqueeze") and source.meta["val"].numel() == source.args[0].meta["val"].numel():
        source = _through(source.args[0])
    shape, repeated = source.meta["val"].shape, shaped.meta["val"].shape
    if len(shape) != 4 or expanded.args[0].meta["val"].shape[2] != 1 or shape[1] * expanded.meta["val"].shape[2] != repeated[1]:
        return None
    return source


def _shifted_loss(node: Any) -> Optional[Rewrite]:
    """The loss of a language model whose labels are padded by an ignored one and then shifted. The logits reach the loss as
    the head makes them, so that the plan may compute both in chunks of tokens."""
    logits, labels = _behind_views(node.args[0]), _behind_views(node.args[1])
    rest = dict(zip(("weight", "reduction", "ignore_index", "label_smoothing"), node.args[2:])) | dict(node.kwargs)
    ignored = rest.get("ignore_index", -100)
    if rest.get("weight") is not None or rest.get("reduction", 1) != 1 or rest.get("label_smoothing"):
        return None
    if not _is(labels, "slice"):
        return None
    padded = _behind_views(labels.args[0])
    axis, start = (labels.args[1:3] if len(labels.args) > 2 else (None, None))
    if not _is(padded, "pad", "constant_pad_nd") or list(padded.args[1]) != [0, 1] or axis not in (-1, 1) or start != 1:
        return None
    fill = padded.kwargs.get("value", padded.args[-1])
    source, shape = padded.args[0], tuple(logits.meta["val"].shape)
    if fill != ignored or shape[:-1] != tuple(source.meta["val"].shape) or len(shape) != 3:
        return None

    def emit(c: Context, v: List[Any]) -> Any:
        last = c.value(torch.full((shape[0], 1), ignored, dtype=torch.int32))
        return f.cross_entropy(v[0], f.cat([v[1][:, 1:], last], 1), ignored)

    return Rewrite([logits, source], emit)


def _behind_views(node: Any) -> Any:
    node = _through(node)
    while _is(node, "view", "reshape", "_unsafe_view", "flatten", *_NOTHING):
        source = node.args[0]
        if source.meta["val"].dtype != node.meta["val"].dtype:
            break
        node = _through(source)
    return node


_MATCHES = {"mul": lambda node: _rms_norm(node) or _tanh_gelu(node), "scaled_dot_product_attention": _repeated_heads,
            "cross_entropy_loss": _shifted_loss}
