"""Exports a module with its loss as one graph; parameters keep the names that they have in the module."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional

import torch

from ..errors import SettingError


def named_parameters(module: torch.nn.Module) -> Dict[str, Any]:
    """Each parameter once, by its first name."""
    return dict(module.named_parameters())


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

    `parameters`: those that the graph reads, by name; `values`: the meaning of each placeholder: ("parameter", name),
    ("input", name) or ("constant", tensor).
    """

    def __init__(self, module: torch.nn.Module, example: Dict[str, Any], loss: Optional[Callable[..., Any]]) -> None:
        taken = _taken(module, example, loss is not None)
        program = _export(_Loss(module, loss, taken), example)
        self.graph = program.graph
        self.parameters: Dict[str, Any] = {}
        self.values: Dict[str, Any] = {}
        names = {id(parameter): name for name, parameter in named_parameters(module).items()}
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
            else:
                self.values[placeholder] = ("constant", held[spec.target])
        if program.graph_signature.buffers_to_mutate:
            name = next(iter(program.graph_signature.buffers_to_mutate.values()))
            raise SettingError(f"the module writes its buffer {name} in forward()",
                               "modules with running statistics are not supported: put them into eval() mode")


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
    except (TypeError, ValueError, RuntimeError) as error:
        raise SettingError(f"torch.export cannot record {type(wrapper.module).__name__}: {str(error).strip()}",
                           "control flow that depends on numbers cannot be planned") from error
    finally:
        if cached:
            setattr(config, "use_cache", cached)
