"""Walks an exported graph and appends its ops to a trace.

PyTorch computes once all that depends on neither inputs nor parameters, and is not random: positions, masks, rotary tables. Patterns that
Plimsoll has an op for are replaced first, and nodes that only the replaced patterns read are dropped.
"""
from __future__ import annotations

import collections
import contextlib
import os
from typing import Any, Dict, List, Mapping, Set, Tuple

import torch

from .. import functional as f
from .._module import Buffer, Parameter
from .._trace import Trace, scope
from .._values import Value
from ..errors import SettingError, UnsupportedOp
from . import _inplace, _patterns
from ._export import Exported
from ._ops import OPS, Context, op_name

# Ops of the export that compute nothing.
_SILENT = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "_assert_async"}


def build(exported: Exported, trace: Trace, declared: Mapping[str, Any], precision: str) -> Value:
    """The loss as a value of the trace. Errors: UnsupportedOp, SettingError."""
    values = {name: trace.input(name, shape, dtype) for name, (shape, dtype) in declared.items()}
    for name, parameter in exported.parameters.items():
        kind = "filters" if name in exported.filters else None
        values[name] = trace.parameter(name, Parameter(tuple(parameter.shape) or (1,), "zeros",
                                                       trainable=parameter.requires_grad, kind=kind))
    for name, buffer in exported.buffers.items():
        values[name] = trace.parameter(name, Buffer(tuple(buffer.shape)))
    for name in exported.counts:
        trace.count(name)
    with contextlib.ExitStack() as scopes:
        if precision != "fp32":
            scopes.enter_context(scope("autocast", precision))
        loss = _Walk(exported, trace, values).run()
    if not isinstance(loss, Value) or loss.numel() != 1:
        raise SettingError("the loss is not a single number that depends on the parameters",
                           "compute one from the module's output: loss=lambda output: …")
    return loss


class _Walk:
    def __init__(self, exported: Exported, trace: Trace, values: Mapping[str, Value]) -> None:
        self.exported, self.trace, self.values = exported, trace, values
        self.env: Dict[Any, Any] = {}
        self.context = Context(trace)
        self.rewrites = _patterns.find(exported.graph)
        self.output = next(node for node in exported.graph.nodes if node.op == "output")

    def run(self) -> Any:
        """The graph's first output."""
        needed = self._needed()
        varying = self._varying(needed)
        self._refuse_unknown(varying)
        _inplace.check(self.exported.graph, needed, varying)
        with contextlib.ExitStack() as scopes:
            for node in self.exported.graph.nodes:
                if node in needed and node.op != "output":
                    self._enter(node, scopes)
                    self.env[node] = self._value(node)
                    if _inplace.writes(node):  # what was written is what later nodes read
                        self.env[node.args[0]] = self.env[node]
        result = self.output.args[0]
        return self.env[result[0] if isinstance(result, (tuple, list)) else result]

    def _needed(self) -> Set[Any]:
        needed: Set[Any] = set()
        self._add_needed([self.output], needed)
        writing = [node for node in self.exported.graph.nodes if _inplace.writes(node)]
        while True:  # what is read may have been written by a node that nothing reads
            more = [node for node in writing if node not in needed and _inplace.base(node.args[0]) in needed]
            if not more:
                return needed
            self._add_needed(more, needed)

    def _add_needed(self, open_nodes: List[Any], needed: Set[Any]) -> None:
        while open_nodes:
            node = open_nodes.pop()
            if node not in needed:
                needed.add(node)
                open_nodes += self.rewrites[node].operands if node in self.rewrites else node.all_input_nodes

    def _refuse_unknown(self, varying: Set[Any]) -> None:
        """Raises one error for all ops without a counterpart, the most frequent first."""
        unknown: "collections.Counter[str]" = collections.Counter()
        places: Dict[str, str] = {}
        for node in self.exported.graph.nodes:
            if node in varying and node.op == "call_function" and node not in self.rewrites:
                name = op_name(node.target)
                if name not in OPS and name not in _SILENT and _inplace.plain_name(name) not in OPS:
                    unknown[name] += 1
                    places.setdefault(name, source_of(node))
        if unknown:
            name, count = unknown.most_common(1)[0]
            others = ", ".join(sorted(set(unknown) - {name}))
            raise UnsupportedOp(f"the op {name} of PyTorch ({count} times) has no counterpart here: {places[name]}",
                                f"also without one: {others}" if others else "write it with other ops", name, places[name])

    def _varying(self, needed: Set[Any]) -> Set[Any]:
        """Nodes that depend on an input or a parameter, or draw random numbers."""
        varying: Set[Any] = set()
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                if self.exported.values[node.name][0] != "constant":
                    varying.add(node)
            elif node in needed and (_draws(node) or any(above in varying for above in node.all_input_nodes)):
                if not self.context.only_shape(op_name(node.target)):
                    varying.add(node)
        return varying

    def _value(self, node: Any) -> Any:
        if node.op == "placeholder":
            kind, what = self.exported.values[node.name]
            return what if kind == "constant" else self.values[what]
        if node.op == "get_attr":
            return getattr(self.exported.graph.owning_module, node.target)
        try:
            if node in self.rewrites:
                rewrite = self.rewrites[node]
                return self._shaped(node, rewrite.emit(self.context, [self.env[n] for n in rewrite.operands]))
            name = op_name(node.target)
            args, kwargs = self._resolve(node.args), self._resolve(dict(node.kwargs))
            if name in _SILENT:
                return None
            if self.context.only_shape(name) or not (_draws(node) or _holds_value((args, kwargs))):
                return self._computed(node, name, args, kwargs)
            function = OPS[name] if name in OPS else OPS[_inplace.plain_name(name)]
            return self._shaped(node, function(self.context, node, *args, **kwargs))
        except UnsupportedOp as error:
            error.op, error.source = error.op or op_name(node.target), error.source or source_of(node)
            raise
        except TypeError as error:
            raise UnsupportedOp(f"the op {op_name(node.target)} of PyTorch has arguments without a counterpart here: {error}: "
                                f"{source_of(node)}", "", op_name(node.target), source_of(node)) from error
        except SettingError as error:
            raise UnsupportedOp(f"the op {op_name(node.target)} of PyTorch cannot be imported: {error.args[0]}: "
                                f"{source_of(node)}", error.hint, op_name(node.target), source_of(node)) from error

    def _computed(self, node: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Computes the node with PyTorch."""
        if self.context.only_shape(name) and _holds_value((args, kwargs)):
            example = node.meta["val"]
            fill = kwargs.get("fill_value", args[-1] if name in ("full_like", "new_full") else 0)
            number = {"ones_like": 1, "new_ones": 1}.get(name, fill)
            return torch.full(tuple(example.shape), number, dtype=example.dtype)
        with torch.no_grad():
            return node.target(*args, **kwargs)

    def _resolve(self, item: Any) -> Any:
        if isinstance(item, torch.fx.Node):
            return self.env[item]
        if isinstance(item, (list, tuple)):
            return type(item)(self._resolve(part) for part in item)
        if isinstance(item, dict):
            return {name: self._resolve(part) for name, part in item.items()}
        return item

    def _shaped(self, node: Any, result: Any) -> Any:
        """The result with the shape that the export recorded."""
        wanted = node.meta.get("val")
        if isinstance(result, Value) and isinstance(wanted, torch.Tensor):
            shape = tuple(wanted.shape) or (1,)
            if result.shape != shape and result.numel() == wanted.numel():
                return f.reshape(result, shape)
            if result.shape != shape:
                raise UnsupportedOp(f"the op {op_name(node.target)} of PyTorch gives {list(shape)}, and {list(result.shape)} "
                                    f"came out here: {source_of(node)}")
        return result

    def _enter(self, node: Any, scopes: contextlib.ExitStack) -> None:
        """Ops of a module are in its scope, so that reports and the planner know the layers."""
        stack: List[Tuple[str, Any]] = list((node.meta.get("nn_module_stack") or {}).values())
        name = stack[-1][0].removeprefix("module").lstrip(".") if stack else ""
        if name != self.trace.path:
            scopes.pop_all().close()
            self.trace.path = name
            if name:
                scopes.enter_context(scope("module", name))


def _draws(node: Any) -> bool:
    """Whether an op draws random numbers, so that a step cannot use what one call has given."""
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _holds_value(item: Any) -> bool:
    if isinstance(item, (list, tuple)):
        return any(_holds_value(part) for part in item)
    if isinstance(item, dict):
        return any(_holds_value(part) for part in item.values())
    return isinstance(item, Value)


def source_of(node: Any) -> str:
    """The line of source that called the op, outside of PyTorch itself: "model.py:12: y = torch.roll(x, 1)"."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    frames = [at for at, line in enumerate(lines) if line.startswith("File ")]
    own = [at for at in frames if f"{os.sep}torch{os.sep}" not in lines[at]] or frames
    if not own:
        return "its source is not known"
    path, number = (part.strip() for part in lines[own[-1]].split(",")[:2])
    code = lines[own[-1] + 1] if own[-1] + 1 < len(lines) else ""
    return f"{path[len('File '):].strip(chr(34))}:{number.replace('line ', '')}: {code}".rstrip(": ")
