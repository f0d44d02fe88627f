"""Ops that write to their first operand, ``relu_`` or ``add_``: each is imported as the op that makes a new value, and later
readers of the operand get that value. Where another name for the same memory could be read later, the op is refused."""
from __future__ import annotations

from typing import Any, Set

from ..errors import UnsupportedOp
from ._ops import op_name

_NAMES = {"relu_", "add_", "sub_", "mul_", "div_", "clamp_", "sigmoid_", "tanh_", "silu_", "hardswish_", "hardsigmoid_", "hardtanh_",
          "relu6_", "leaky_relu_", "dropout_", "neg_", "exp_", "sqrt_"}


def plain_name(name: str) -> str:
    """relu of relu_; of any other op its own name."""
    return name[:-1] if name in _NAMES else name


def writes(node: Any) -> bool:
    """Whether the node writes to its first operand."""
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    return schema is not None and bool(schema.is_mutable) and bool(node.args) and hasattr(node.args[0], "users")


def shares_memory(node: Any) -> bool:
    """Whether the result may show the memory of the first operand: a view, or an op that writes in place."""
    if node.op != "call_function":
        return False
    if op_name(node.target) in ("getitem", "_unsafe_view"):  # which declare nothing
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)


def base(node: Any) -> Any:
    """The node that made the memory that this one shows, too: behind views, and behind what was written in place."""
    while shares_memory(node) and node.args and hasattr(node.args[0], "users"):
        node = node.args[0]
    return node


def check(graph: Any, needed: Set[Any], varying: Set[Any]) -> None:
    """Errors: UnsupportedOp where a write would show under another name: in an input, or in a view that is read later. What
    does not vary PyTorch computes, and writes to its own memory."""
    from ._import import source_of

    place = {node: at for at, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node not in needed or not writes(node):
            continue
        target, root = node.args[0], base(node)
        if node not in varying and root.op == "call_function":
            continue
        others = [other for other in graph.nodes if other is not target and place[other] < place[node] and base(other) is root]
        read_later = any(place[user] > place[node] for other in others for user in other.users if user in needed)
        if root.op != "call_function" or read_later:
            name = op_name(node.target)
            raise UnsupportedOp(f"the op {name} of PyTorch writes in place to an input or a parameter, or to a tensor of which "
                                f"another view is read later: {source_of(node)}",
                                "use the op without an underscore, which makes a new tensor", name, source_of(node))
