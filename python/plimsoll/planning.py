"""``plan()``: a module, the shapes of its inputs and an optimizer become a step whose memory is known to the byte."""
from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _native, _trace
from ._handles import Handle
from ._module import BatchCount, Module, buffers_by_name, parameters_by_name
from ._values import Operand
from .errors import SettingError, nearest
from .optimizers import AdamW, Optimizer

_DTYPES = ("float32", "int32", "int64", "bool")
Inputs = Mapping[str, Any]
# What the library's errors call the arguments of plan(): by the names of a run file. Optimizers check their own.
_ARGUMENTS = (("training.max_grad_norm", "clip_norm"), ("training.loss_scale", "loss_scale"), ("memory.budget", "memory_budget"),
              ("memory.recompute", "recompute"), ("memory.offload", "offload"), ("runtime.device", "device"),
              ("runtime.threads", "threads"))


class Plan:
    """A planned step. A ``Session`` of the plan allocates the memory; the plan itself allocates none of it.

    ``print(plan)`` shows each pool and class of memory; a notebook shows a chart of the live bytes at each op.
    """

    def __init__(self, handle: int, is_run: bool = False, initial: Optional[Callable[[], Mapping[str, Any]]] = None) -> None:
        self._handle = Handle(handle, "pls_plan_free")
        self._initial = initial  # what a session's parameters begin with, in place of a draw
        self._is_run = is_run
        lib = _native.library()
        self._report: Dict[str, Any] = json.loads(lib.pls_plan_json(handle).decode())
        #: whether the step fits the budget
        self.fits: bool = bool(lib.pls_plan_fits(handle))
        #: bytes of all that a session of this plan maps
        self.peak_bytes: int = int(lib.pls_plan_peak_bytes(handle))

    @property
    def seconds(self) -> float:
        """The estimated seconds of a step."""
        return float(self._report.get("seconds") or 0.0)

    @property
    def classes(self) -> Dict[str, int]:
        """Bytes by class: ``parameters``, ``optimizer_state``, ``gradients``, ``activations`` …"""
        return {name: int(size) for name, size in self._report.get("classes", {}).items()}

    @property
    def least_bytes(self) -> Optional[int]:
        """The smallest budget that fits, if the plan does not fit; else ``None``."""
        least = self._report.get("least_bytes")
        return None if least is None else int(least)

    @property
    def budget_bytes(self) -> Optional[int]:
        """The budget in bytes, or ``None``."""
        budget = self._report.get("budget_bytes")
        return None if budget is None else int(budget)

    @property
    def report(self) -> Dict[str, Any]:
        """The whole plan as plain data."""
        return dict(self._report)

    @property
    def parameters(self) -> Dict[str, Tuple[int, ...]]:
        """The shape of each parameter by name, in order."""
        return {p["name"]: tuple(p["shape"]) for p in self._report.get("parameters", [])}

    @property
    def buffers(self) -> Dict[str, Tuple[int, ...]]:
        """The shape of each buffer by name: BatchNorm's running values and numbers of batches."""
        return {b["name"]: tuple(b["shape"]) for b in self._report.get("buffers", [])}

    @property
    def inputs(self) -> Dict[str, Tuple[Tuple[int, ...], str]]:
        """Shape and type of each input of a batch."""
        return {i["name"]: (tuple(i["shape"]), i["dtype"]) for i in self._report.get("inputs", [])}

    def table(self) -> str:
        """The plan as text: the memory by class, the choices, the estimated time."""
        return _native.plan_text(self._handle.value, "table")

    def timeline(self) -> str:
        """An SVG of the live bytes at each op of the step, by class."""
        return _native.plan_text(self._handle.value, "timeline")

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        state = "fits" if self.fits else f"does not fit, least {self.least_bytes} bytes"
        return f"Plan(peak_bytes={self.peak_bytes}, {state})"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.table())}</pre>\n{self.timeline()}"


def plan(module: Union[Module, str, "os.PathLike[str]"], inputs: Optional[Inputs] = None, *,
         optimizer: Optional[Optimizer] = None, clip_norm: Optional[float] = None,
         memory_budget: Union[int, str, None] = None, device: str = "cpu",
         loss_scale: Union[float, Mapping[str, Any], None] = None, recompute: Any = "auto", offload: Any = "auto",
         budget_scope: str = "session", threads: Optional[int] = None, accumulate: bool = True,
         settings: Optional[Mapping[str, Any]] = None, overrides: Optional[Mapping[str, Any]] = None) -> Plan:
    """Plans a training step without allocating its memory. A plan that does not fit its budget is returned as well.

    :param module: its ``forward`` gets the inputs by name and returns the loss, one number. Or the path of a run file,
        which is planned as by ``plimsoll plan``; then all arguments but ``overrides`` are ignored.
    :param inputs: ``{"ids": ((8, 512), "int32")}``: shape and type (float32, int32, int64, bool) of each tensor of a
        batch. Instead of the pair you can give an array, which has both.
    :param optimizer: ``AdamW()`` unless given.
    :param clip_norm: gradients are clipped to this total norm, as by ``torch.nn.utils.clip_grad_norm_``.
    :param memory_budget: bytes, or a text such as "4GiB", of all that a session maps.
    :param loss_scale: for fp16: a number, or a map with init_scale, growth_factor, backoff_factor, growth_interval.
    :param recompute: what to recompute in the backward pass: "auto" (only what the budget requires), "none", "full" …
    :param accumulate: ``False`` plans steps of one part, without accumulators of the gradients: a session then takes no
        ``step(…, accumulate=k)`` and has no ``gradients()``.
    :param budget_scope: "process" also counts the memory that the process already uses.
    :param settings: more settings of a run file: ``{"training": {…}, "memory": {…}, "runtime": {…}}``.
    :param overrides: settings that replace those of the run file: ``{"memory.budget": "2GiB"}``.
    """
    if isinstance(module, (str, os.PathLike)):
        return _plan_of_run(os.fspath(module), overrides)
    if not isinstance(module, Module):
        raise SettingError(f"plan: expected a module, got a {type(module).__name__}",
                           "derive from plimsoll.Module; plimsoll.torch.plan takes modules of PyTorch")
    if overrides is not None:
        raise SettingError("plan: overrides apply to run files only", "for a module give settings=")
    if not isinstance(inputs, Mapping) or not inputs:
        raise SettingError("plan: there are no inputs by name", 'inputs={"x": ((16, 7), "float32")}')
    declared = {name: input_type(name, item) for name, item in inputs.items()}
    with _trace.active(_trace.Trace(module)) as trace:
        parameters = parameters_by_name(module)
        values = {name: trace.input(name, shape, dtype) for name, (shape, dtype) in declared.items()}
        for name, parameter in parameters.items():
            trace.parameter(name, parameter)
        for name, buffer in buffers_by_name(module).items():
            if isinstance(buffer, BatchCount):
                trace.count(name)
            else:
                trace.parameter(name, buffer)
        loss = _forward(module, values)
        run = run_settings(optimizer, parameters, clip_norm=clip_norm, memory_budget=memory_budget, device=device,
                           loss_scale=loss_scale, recompute=recompute, offload=offload, budget_scope=budget_scope,
                           threads=threads, accumulate=accumulate, settings=settings)
        return Plan(finish(trace, loss, run))


def finish(trace: _trace.Trace, loss: Any, run: Mapping[str, Any]) -> int:
    """Plans the traced model, whose loss is `loss`."""
    _native.call("pls_loss", trace.handle, loss.id)
    try:
        return _native.create("pls_plan_create", trace.handle, _native.text(run))
    except SettingError as error:
        raise SettingError(_by_argument(error.args[0]), _by_argument(error.hint)) from None


def _by_argument(message: str) -> str:
    """The message without run-file names for arguments and without a line of the text that the library was given."""
    for setting, argument in _ARGUMENTS:
        message = re.sub(rf"(?<![\w.]){re.escape(setting)}(?!\w)", argument, message)
    return re.sub(r": settings line \d+$", "", message, flags=re.MULTILINE)


def _plan_of_run(path: str, overrides: Optional[Mapping[str, Any]]) -> Plan:
    return Plan(_native.create("pls_plan_run", path.encode(), None, *overrides_of(overrides)), is_run=True)


def overrides_of(overrides: Optional[Mapping[str, Any]]) -> Tuple[Any, int]:
    """``{"memory.budget": "2GiB"}`` as an array of "path=value" and its length."""
    words = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in (overrides or {}).items()]
    return _native.texts(words), len(words)


def input_type(name: str, item: Any) -> Tuple[Tuple[int, ...], str]:
    """Shape and type of an input that was declared as a pair, or by an array. Errors: SettingError."""
    if hasattr(item, "shape") and hasattr(item, "dtype"):
        shape, dtype = item.shape, item.dtype
    else:
        try:
            shape, dtype = item
        except (TypeError, ValueError):
            raise SettingError(f"inputs: {name} is {item!r}", 'expected a pair such as ((16, 7), "float32")') from None
    kind = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).replace("torch.", "")
    if kind not in _DTYPES:
        raise SettingError(f"inputs: the type of {name} is {kind!r}", nearest(str(kind), _DTYPES, "types"))
    sizes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if any(isinstance(size, bool) or not hasattr(size, "__index__") or size < 1 for size in sizes):
        raise SettingError(f"inputs: the shape of {name} is {list(sizes)}", "sizes are positive integers")
    return tuple(int(size) for size in sizes), kind


def _forward(module: Module, values: Dict[str, Any]) -> Any:
    import inspect

    accepted: Sequence[str] = ()
    try:
        signature = inspect.signature(module.forward)
        accepted = [name for name, p in signature.parameters.items()
                    if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        signature.bind(**values)
    except TypeError as error:
        raise SettingError(f"{type(module).__name__}.forward({', '.join(accepted)}) and the inputs "
                           f"{', '.join(values)} do not agree: {error}",
                           "inputs go to forward() by name") from None
    loss = module(**values)
    if not isinstance(loss, Operand):
        raise SettingError(f"{type(module).__name__}.forward returned a {type(loss).__name__}",
                           "it returns the loss, a value of one element: cross_entropy(…), mse(…)")
    loss = _trace.operand(loss)
    if loss.numel() != 1:
        raise SettingError(f"{type(module).__name__}.forward returned a value of shape {list(loss.shape)}",
                           "the loss is one number: use mean() or sum()")
    return loss


def run_settings(optimizer: Any, parameters: Mapping[str, Any], *, clip_norm: Optional[float] = None, memory_budget: Any = None,
                 device: str = "cpu", loss_scale: Any = None, recompute: Any = "auto", offload: Any = "auto",
                 budget_scope: str = "session", threads: Optional[int] = None, accumulate: bool = True,
                 settings: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """The sections of a run file for a module."""
    optimizer = AdamW() if optimizer is None else optimizer
    if not isinstance(optimizer, Optimizer):
        raise SettingError(f"optimizer: {optimizer!r} is not an optimizer of plimsoll", "one of SGD, Adam, AdamW, Lion, Adafactor, "
                           "Muon, AdamW8bit: optimizer=plimsoll.AdamW(lr=3e-4)")
    training = {**optimizer.resolved([*parameters]), "max_grad_norm": clip_norm}
    if not accumulate:
        training["gradient_accumulation_steps"] = 1
    frozen = [name for name, parameter in parameters.items() if not parameter.requires_grad]
    if frozen:
        training["freeze"] = frozen
    if loss_scale is not None:
        training["loss_scale"] = dict(loss_scale) if isinstance(loss_scale, Mapping) else loss_scale
    memory: Dict[str, Any] = {name: value for name, value in (("recompute", recompute), ("offload", offload))
                              if value != "auto"}
    if budget_scope not in ("session", "process"):
        raise SettingError(f"budget_scope: {budget_scope!r}", "one of session, process")
    if memory_budget is not None:
        memory["budget"] = memory_budget if budget_scope == "session" else max(1, _bytes(memory_budget) - _resident_bytes())
    runtime: Dict[str, Any] = {"device": device}
    if threads is not None:
        runtime["threads"] = threads
    run: Dict[str, Any] = {"training": training, "memory": memory, "runtime": runtime}
    for section, own in (settings or {}).items():
        run[section] = {**run.get(section, {}), **own} if isinstance(own, Mapping) else own
    return run


def _bytes(budget: Any) -> int:
    """4GiB as 4294967296, in the units that the library reads: 4GB is decimal, 4G is 4GiB. Errors: SettingError."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(?:([kmgtpe])(i?b)|([kmgt])|b)?\s*", str(budget).lower())
    if match is None:
        raise SettingError(f"memory_budget: {budget!r} is no size", 'bytes, or a text such as "4GiB"')
    prefix, base = match[2] or match[4] or "", 1000 if match[3] == "b" else 1024
    return int(float(match[1]) * base ** " kmgtpe".index(prefix or " "))


def _resident_bytes() -> int:
    """The resident memory of the process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
