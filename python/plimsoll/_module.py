"""Modules and their parameters: names come from attributes and lists, as in PyTorch."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._values import Operand
from .errors import SettingError


class Parameter(Operand):
    """A trained tensor of a module. It holds its shape and its initialisation; a session holds the numbers.

    :param shape: the shape of the tensor.
    :param init: ``"uniform"`` within ±``scale``, ``"normal"`` with standard deviation ``scale``, ``"zeros"``, ``"ones"``.
    :param trainable: ``False``: the parameter is frozen; it has no gradient and no optimizer state.
    :param kind: ``"linear"``, ``"embedding"``, ``"vector"`` or ``"filters"`` (of a convolution, [out, in / groups, height,
        width]): optimizers such as Muon treat these differently. By default a parameter of one axis is a vector and any
        other is linear.
    """

    def __init__(self, shape: Sequence[int], init: str = "normal", scale: float = 1.0, trainable: bool = True,
                 kind: Optional[str] = None) -> None:
        if init not in ("uniform", "normal", "zeros", "ones"):
            raise SettingError(f"Parameter: init is {init!r}", "one of uniform, normal, zeros, ones")
        self._shape = tuple(_size("Parameter", "shape", size) for size in shape)
        self.init, self.scale, self.trainable, self.kind = init, float(scale), bool(trainable), kind

    def options(self) -> Dict[str, Any]:
        """How it is declared to the library."""
        options: Dict[str, Any] = {"init": self.init, "trained": self.trainable}
        if self.init in ("uniform", "normal"):
            options["bound" if self.init == "uniform" else "std"] = self.scale
        if self.kind is not None:
            options["kind"] = self.kind
        return options

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes."""
        return self._shape

    @property
    def requires_grad(self) -> bool:
        """Whether the parameter is trained."""
        return self.trainable

    def requires_grad_(self, requires_grad: bool = True) -> "Parameter":
        """As ``torch.Tensor.requires_grad_``: ``False`` freezes the parameter."""
        self.trainable = bool(requires_grad)
        return self

    def __repr__(self) -> str:
        return f"Parameter({list(self._shape)}, init={self.init!r}, scale={self.scale:g})"


class Buffer(Operand):
    """A tensor of a module that no optimizer changes: a running mean or variance of BatchNorm, which follows the batches'.
    A session holds the numbers; they are saved and loaded with the parameters.

    :param shape: the shape of the tensor.
    :param init: ``"zeros"`` or ``"ones"``.
    """

    def __init__(self, shape: Sequence[int], init: str = "zeros") -> None:
        if init not in ("zeros", "ones"):
            raise SettingError(f"Buffer: init is {init!r}", "one of zeros, ones")
        self._shape = tuple(_size("Buffer", "shape", size) for size in shape)
        self.init = init

    def options(self) -> Dict[str, Any]:
        """How it is declared to the library."""
        return {"init": self.init, "kind": "buffer"}

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of the axes."""
        return self._shape

    def __repr__(self) -> str:
        return f"Buffer({list(self._shape)}, init={self.init!r})"


class BatchCount(Buffer):
    """The number of batches that the running values beside it have followed, PyTorch's ``num_batches_tracked``: an integer that
    a session counts, and that no function reads."""

    def __init__(self) -> None:
        super().__init__(())


class Module:
    """A part of a model: parameters and modules as attributes, in lists, tuples or dicts, and ``forward``.

    ``super().__init__()`` need not be called. ``plan()`` calls ``forward`` once, to record which ops the step consists of.
    Names are paths of attributes: ``layers.0.up.weight``. A parameter or module that is reached twice has the first name.
    """

    #: ``False`` after ``eval()``: plans that are made from then on have no dropout in this module, and BatchNorm uses its
    #: running values, in steps too
    training: bool = True

    def forward(self, *args: Any, **inputs: Any) -> Any:
        """Computes the module. The outermost module gets the inputs by name and returns the loss."""
        raise SettingError(f"{type(self).__name__} has no forward()", "define forward(self, …)")

    def __call__(self, *args: Any, **inputs: Any) -> Any:
        from . import _trace

        with _trace.entered(self):
            return self.forward(*args, **inputs)

    def named_parameters(self) -> Iterator[Tuple[str, Parameter]]:
        """(name, parameter) of each parameter, in the order of the attributes; shared ones once."""
        yield from self._named(Parameter)

    def named_buffers(self) -> Iterator[Tuple[str, Buffer]]:
        """(name, buffer) of each buffer, in the order of the attributes; shared ones once."""
        yield from self._named(Buffer)

    def _named(self, kind: Any) -> Iterator[Tuple[str, Any]]:
        seen = set()
        for name, item in _walk(self, "", []):
            if isinstance(item, kind) and id(item) not in seen:
                seen.add(id(item))
                yield name, item

    def named_modules(self) -> Iterator[Tuple[str, "Module"]]:
        """(name, module) of this module, whose name is empty, and of all below it; shared ones once."""
        yield from self._named(Module)

    def parameters(self) -> Iterator[Parameter]:
        """Each parameter once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def num_parameters(self) -> int:
        """The number of elements of all parameters."""
        return sum(math.prod(parameter.shape) for parameter in self.parameters())

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        """As ``torch.nn.Module.requires_grad_``: ``False`` freezes all parameters of the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode: bool = True) -> "Module":
        """As ``torch.nn.Module.train``, for this module and all below it: see ``training``."""
        for _, module in self.named_modules():
            module.training = bool(mode)
        return self

    def eval(self) -> "Module":
        """``train(False)``. A session's ``evaluate`` needs no call: it uses running values and drops nothing in any case."""
        return self.train(False)


class ModuleList(List[Any]):
    """A list of modules, named as in PyTorch. A plain list does the same."""


class Sequential(Module):
    """Modules, or functions of one value, applied one after the other."""

    def __init__(self, *modules: Any) -> None:
        self._modules = list(modules)

    def forward(self, x: Any) -> Any:
        """``x`` through all modules in order."""
        for module in self._modules:
            x = module(x)
        return x

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, index: Any) -> Any:
        return self._modules[index]


def _children(item: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(item, Sequential):
        yield from ((str(i), child) for i, child in enumerate(item._modules))
        yield from ((name, child) for name, child in vars(item).items() if name != "_modules")
    elif isinstance(item, Module):
        yield from vars(item).items()
    elif isinstance(item, Mapping):
        yield from ((str(key), child) for key, child in item.items())
    elif isinstance(item, (list, tuple)):
        yield from ((str(i), child) for i, child in enumerate(item))


def _walk(item: Any, name: str, path: List[Tuple[int, str]]) -> Iterator[Tuple[str, Any]]:
    """Modules and parameters below `item`, depth first. `path` holds the containers around it."""
    if isinstance(item, (Parameter, Buffer)):
        yield name, item
        return
    if not isinstance(item, (Module, Mapping, list, tuple)):
        return
    for above, above_name in path:
        if above == id(item):
            raise SettingError(f"the module at {name!r} contains itself: it is also {above_name or 'the module'!r}",
                               "modules form a tree: keep a reference to a parent outside the attributes")
    if isinstance(item, Module):
        yield name, item
    path.append((id(item), name))
    for key, child in _children(item):
        yield from _walk(child, f"{name}.{key}" if name else key, path)
    path.pop()


def parameters_by_name(module: Module) -> Dict[str, Parameter]:
    """All parameters, in order. Errors: SettingError where two have one name."""
    return _by_name("parameters", module.named_parameters())


def buffers_by_name(module: Module) -> Dict[str, Buffer]:
    """All buffers, in order. Errors: SettingError where two have one name."""
    return _by_name("buffers", module.named_buffers())


def _by_name(what: str, items: Iterator[Tuple[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for name, item in items:
        if name in found:
            raise SettingError(f"two {what} are named {name}", "a key of a dict with a dot in it looks like a path")
        found[name] = item
    return found


def _size(layer: str, what: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SettingError(f"{layer}: {what} is {value!r}, expected a positive integer")
    if int(value) < 1:
        raise SettingError(f"{layer}: {what} is {value}, expected a positive integer")
    return int(value)


def uniform_fan_in(shape: Sequence[int], fan_in: int, kind: Optional[str] = None) -> Parameter:
    """PyTorch's default for linear and convolution layers: uniform within ±1/√fan_in."""
    return Parameter(shape, "uniform", 1.0 / math.sqrt(fan_in), kind=kind)
