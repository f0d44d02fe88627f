"""Trains a ``torch.nn.Module`` within a budget: ``torch.export`` records its forward pass; Plimsoll runs all of the step.

    import plimsoll as pl, plimsoll.torch as plt

    plan = plt.plan(module, {"input_ids": ids, "labels": labels}, optimizer=pl.AdamW(lr=3e-4), memory_budget="4GiB")
    with pl.Session(plan) as session:       # begins with the module's weights
        for batch in loader:
            session.step(batch)
        plt.copy_back(session, module)
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Union

import torch

from .. import _trace
from ..errors import SettingError
from ..optimizers import Optimizer
from ..planning import Plan, finish, input_type, run_settings
from ..session import Session
from ._export import Exported, named_tensors
from ._import import build

__all__ = ["plan", "copy_back", "load"]


def plan(module: torch.nn.Module, example: Mapping[str, Any], loss: Optional[Callable[..., Any]] = None,
         optimizer: Optional[Optimizer] = None, memory_budget: Union[int, str, None] = None, *,
         clip_norm: Optional[float] = None, device: str = "cpu", loss_scale: Any = None, precision: str = "fp32",
         recompute: Any = "auto", offload: Any = "auto", threads: Optional[int] = None, accumulate: bool = True,
         settings: Optional[Mapping[str, Any]] = None) -> Plan:
    """Plans training steps of a PyTorch module, by ``torch.export``. A session of the plan begins with its weights.

    :param module: in training mode if dropout is to be applied and the running values of BatchNorm are to follow. Parameters without ``requires_grad`` are frozen.
    :param example: tensors by name, as a batch has them. They are passed to ``module.forward``, and those that it does not take
        to ``loss``. Their shapes are the plan's.
    :param loss: computes the loss from the module's output (and the rest of the example, by name). By default the
        output's ``loss``, as models of transformers have it, or the output itself.
    :param precision: of matrix products: "fp32", "bf16", "fp16".
    :param accumulate: ``False`` plans steps of one part, which need less memory (see ``plimsoll.plan``).

    Errors: ``UnsupportedOp`` with the op, the source line that calls it and the number of calls; ``SettingError``.
    """
    if not isinstance(module, torch.nn.Module):
        raise SettingError(f"plimsoll.torch.plan: expected a torch.nn.Module, got a {type(module).__name__}")
    if not example:
        raise SettingError("plimsoll.torch.plan: the example is empty", 'example={"x": tensor, …}')
    declared = {name: input_type(name, tensor) for name, tensor in example.items()}
    exported = Exported(module, dict(example), loss)
    with _trace.active(_trace.Trace()) as trace:
        result = build(exported, trace, declared, precision)
        run = run_settings(optimizer, exported.parameters, clip_norm=clip_norm, memory_budget=memory_budget, device=device,
                           loss_scale=loss_scale, recompute=recompute, offload=offload, threads=threads,
                           accumulate=accumulate, settings=settings)
        return Plan(finish(trace, result, run), initial=lambda: _weights(module, [*exported.parameters, *exported.buffers, *exported.counts]))


def copy_back(session: Session, module: torch.nn.Module) -> None:
    """Copies the session's parameters and running values to the module, by name."""
    with torch.no_grad():
        for name, parameter in _matched(session, module).items():
            parameter.copy_(torch.from_numpy(session[name]).reshape(parameter.shape))


def load(session: Session, module: torch.nn.Module) -> None:
    """Copies the module's parameters and running values to the session, by name."""
    session.load_state_dict(_weights(module, _matched(session, module)))


def _matched(session: Session, module: torch.nn.Module) -> Dict[str, Any]:
    found = {name: parameter for name, parameter in named_tensors(module).items() if name in session}
    missing = [name for name in session.names() if name not in found]
    if missing:
        raise SettingError(f"the module has no parameter {missing[0]} of the session", "give the module that was planned")
    return found


def _weights(module: torch.nn.Module, names: Iterable[str]) -> Dict[str, Any]:
    """The module's parameters and buffers of these names, in the shapes that the plan has: a scalar is a vector of one."""
    parameters = named_tensors(module)
    return {name: _numbers(parameters[name], name.endswith("num_batches_tracked")) for name in names}


def _numbers(tensor: torch.Tensor, is_count: bool) -> Any:
    plain = tensor.detach().to("cpu", torch.float32)
    return plain.numpy() if is_count else plain.reshape(tuple(plain.shape) or (1,)).numpy()
