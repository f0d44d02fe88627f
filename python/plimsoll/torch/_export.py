"""Exports a module with its loss as one graph; parameters keep the names that they have in the module."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

import torch

from ..errors import SettingError
from ._image_ops import cuts_patches
from ._ops import op_name


def named_tensors(module: torch.nn.Module) -> Dict[str, Any]:
    """Each parameter and buffer once, by its first name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


class _Loss(torch.nn.Module):
    """The module followed by its loss."""

    def __init__(self, module: torch.nn.Module, loss: Optional[Callable[..., Any]], taken: List[str]) -> None:
        super().__init__()
        self.module, self.loss, self.taken = module, loss, taken

    def forward(self, **batch: Any) -> Any:
        """The loss of a batch."""
        output = self.module(**{name: batch[name] for name in self.taken})
        rest = {name: value for name, value in batch.items() if name not in self.taken}
        if self.loss is not None:
            return self.loss(output, **rest)
        if isinstance(output, Mapping) and "loss" in output:
            return output["loss"]
        return getattr(output, "loss", output)


class Exported:
    """The graph of a training step's forward pass.

    `parameters`: those that the graph reads, by name; `buffers`: the running values of norms; `counts`: the numbers of batches
    beside them; `filters`: the parameters that
    are weights of convolutions alone; `values`: the meaning of each placeholder: ("parameter", name), ("buffer", name),
    ("input", name) or ("constant", tensor).
    """

    def __init__(self, module: torch.nn.Module, example: Dict[str, Any], loss: Optional[Callable[..., Any]]) -> None:
        taken = _taken(module, example, loss is not None)
        program = _export(_Loss(module, loss, taken), example)
        self.graph = program.graph
        self.parameters: Dict[str, Any] = {}
        self.buffers: Dict[str, Any] = {}
        self.counts: List[str] = []
        self.filters: Set[str] = set()
        self.values: Dict[str, Any] = {}
        nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        names = {id(tensor): name for name, tensor in named_tensors(module).items()}
        held = {**dict(program.named_parameters()), **dict(program.named_buffers()), **program.constants}
        # The wrapper's state dict shares its tensors with the module's.
        of_wrapper = {f"module.{name}": p for name, p in module.named_parameters(remove_duplicate=False)}
        inputs = iter(example)
        for spec in program.graph_signature.input_specs:
            placeholder, kind = spec.arg.name, spec.kind.name
            if kind == "USER_INPUT":
                self.values[placeholder] = ("input", next(inputs))
            elif kind == "PARAMETER":
                parameter = of_wrapper.get(spec.target)
                if parameter is None:
                    raise SettingError(f"loss has a parameter of its own, {spec.target.removeprefix('loss.')}",
                                       "make the loss part of the module, so that its parameters are the module's")
                name = names[id(parameter)]
                self.parameters.setdefault(name, parameter)
                self.values[placeholder] = ("parameter", name)
                if _are_filters(nodes[placeholder]):
                    self.filters.add(name)
            elif kind == "BUFFER" and _is_running(nodes[placeholder]) and spec.target.startswith("module."):
                name = spec.target.removeprefix("module.")
                tensor = dict(module.named_buffers(remove_duplicate=False))[name]
                name = names[id(tensor)]
                self.buffers.setdefault(name, tensor)
                self.values[placeholder] = ("buffer", name)
            else:
                self.values[placeholder] = ("constant", held[spec.target])
        held_by_module = named_tensors(module)
        for name in self.buffers:
            count = name.removesuffix("running_mean") + "num_batches_tracked"
            if name.endswith("running_mean") and count in held_by_module:
                self.counts.append(count)
        for node in nodes.values():
            if self.values[node.name][0] == "constant":
                _refuse_writes(node, program.graph_signature.inputs_to_buffers.get(node.name, node.name))


def _are_filters(node: Any) -> bool:
    """Whether a parameter is the weight of convolutions alone. Vision transformers' patches are a linear layer's rows."""
    return bool(node.users) and node.meta["val"].ndim == 4 and all(
        op_name(user.target) == "conv2d" and user.args[1] is node and not cuts_patches(user) for user in node.users)


def _is_running(node: Any) -> bool:
    """Whether a buffer is the running mean or variance of norms alone."""
    return bool(node.users) and all(
        op_name(user.target) == "batch_norm" and node in user.args[3:5] and node not in user.args[:3] for user in node.users)


def _refuse_writes(node: Any, name: str) -> None:
    """Of a buffer that is written in place; the number of batches that a norm has seen is none, as nothing reads it."""
    for user in node.users:
        if op_name(user.target).endswith("_") and user.args[0] is node and not (
                name.endswith("num_batches_tracked") and not user.users and len(node.users) == 1):
            raise SettingError(f"the module writes its buffer {name.removeprefix('module.')} in forward()",
                               "only running values of BatchNorm follow the batches: put the module into eval() mode")


def _taken(module: torch.nn.Module, example: Mapping[str, Any], has_loss: bool) -> List[str]:
    """The names of the example that are passed to the module's forward; the others are passed to the loss."""
    accepted = inspect.signature(module.forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in accepted.values()) and not has_loss:
        return list(example)
    taken = [name for name in example if name in accepted]
    left = [name for name in example if name not in accepted]
    if left and not has_loss:
        raise SettingError(f"the example has {left[0]}, which {type(module).__name__}.forward does not take",
                           f"it takes {', '.join(accepted)}; loss= gets what is left")
    return taken


def _export(wrapper: torch.nn.Module, example: Dict[str, Any]) -> Any:
    config = getattr(wrapper.module, "config", None)
    cached = getattr(config, "use_cache", None)
    if cached:
        setattr(config, "use_cache", False)  # the cache of generation cannot be exported
    try:
        return torch.export.export(wrapper, (), kwargs=example, strict=False)
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise SettingError(f"torch.export cannot record {type(wrapper.module).__name__}: {str(error).strip()}",
                           "control flow that depends on numbers cannot be planned") from error
    finally:
        if cached:
            setattr(config, "use_cache", cached)
