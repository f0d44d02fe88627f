"""The trace of a forward pass: every function appends an op to the builder of the plan that is being made."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._module import Buffer, Module, Parameter
from ._values import Operand, Value
from .errors import SettingError

_now = threading.local()


class Trace:
    """A builder of the library, with the Python objects that its values stand for."""

    def __init__(self, root: Any = None) -> None:
        self.handle = _native.create("pls_builder_create")
        self.parameters: Dict[int, Value] = {}
        self.constants: Dict[int, Tuple[Any, Value]] = {}  # by id(array); the tuple keeps the array alive
        self.names: Dict[int, str] = {}
        self.path = ""  # of the module whose forward runs
        if isinstance(root, Module):
            self.names = {id(module): name for name, module in root.named_modules()}

    def close(self) -> None:
        """Frees the builder; the values of this trace cannot be used afterwards."""
        handle, self.handle = self.handle, 0
        if handle:
            _native.library().pls_builder_free(handle)

    def typed(self, number: int) -> Value:
        """The value of that number, with its shape and type."""
        dtype, shape, rank = ctypes.c_char_p(), (ctypes.c_int64 * _native.MAX_RANK)(), ctypes.c_int()
        _native.call("pls_value_type", self.handle, number, ctypes.byref(dtype), shape, ctypes.byref(rank))
        return Value(self, number, tuple(shape[:rank.value]), (dtype.value or b"").decode())

    def input(self, name: str, shape: Sequence[int], dtype: str) -> Value:
        """A tensor of each batch."""
        number = ctypes.c_int32()
        _native.call("pls_input", self.handle, name.encode(), dtype.encode(), _native.sizes(shape), len(shape),
                     ctypes.byref(number))
        return self.typed(number.value)

    def count(self, name: str) -> None:
        """The number of batches that running values follow, which is no operand."""
        number = ctypes.c_int32()
        _native.call("pls_parameter", self.handle, name.encode(), _native.sizes(()), 0, _native.text({"kind": "count"}),
                     ctypes.byref(number))

    def parameter(self, name: str, parameter: Union[Parameter, Buffer]) -> Value:
        """A parameter or a buffer of the model."""
        number = ctypes.c_int32()
        _native.call("pls_parameter", self.handle, name.encode(), _native.sizes(parameter.shape), len(parameter.shape),
                     _native.text(parameter.options()), ctypes.byref(number))
        value = self.parameters[id(parameter)] = self.typed(number.value)
        return value

    def constant(self, array: Any) -> Value:
        """A tensor whose elements are known: float32 or int32."""
        import numpy

        known = self.constants.get(id(array))
        if known is not None:
            return known[1]
        plain = numpy.asarray(array.detach() if hasattr(array, "detach") else array)
        if plain.dtype.kind not in "fiub":
            raise SettingError(f"a constant holds {plain.dtype}", "floats and integers can be constants")
        dtype = "float32" if plain.dtype.kind == "f" else "int32"
        dense = numpy.ascontiguousarray(plain, dtype).reshape(plain.shape)
        if dtype == "int32" and not numpy.array_equal(dense, plain):
            raise SettingError("a constant holds integers beyond 32 bits")
        number = ctypes.c_int32()
        _native.call("pls_constant", self.handle, f"constant.{len(self.constants)}".encode(), dtype.encode(),
                     _native.sizes(dense.shape), dense.ndim, dense.ctypes.data, ctypes.byref(number))
        value = self.typed(number.value)
        self.constants[id(array)] = (array, value)
        return value

    def op(self, name: str, operands: Sequence[Optional[Value]], attributes: Mapping[str, Any], results: int) -> List[Value]:
        """Appends an op; an operand that is left out is None."""
        numbers = (ctypes.c_int32 * max(1, len(operands)))(*[_native.NONE if v is None else v.id for v in operands])
        outputs = (ctypes.c_int32 * max(1, results))()
        _native.call("pls_op", self.handle, name.encode(), numbers, len(operands), _native.text(dict(attributes)), outputs,
                     results)
        return [self.typed(number) for number in outputs[:results]]


def current() -> Trace:
    """The trace of the plan that this thread is making. Errors: SettingError outside of one."""
    trace: Optional[Trace] = getattr(_now, "trace", None)
    if trace is None:
        raise SettingError("functions on values can be called only while a plan is made, inside of forward()",
                           "call plimsoll.plan(module, …), which calls forward; numbers come from a Session")
    return trace


@contextlib.contextmanager
def active(trace: Trace) -> Iterator[Trace]:
    """Makes `trace` the one of this thread, and closes it at the end."""
    if getattr(_now, "trace", None) is not None:
        raise SettingError("a plan is being made on this thread: forward() cannot make another one")
    _now.trace = trace
    try:
        yield trace
    finally:
        _now.trace = None
        trace.close()


@contextlib.contextmanager
def scope(kind: str, argument: Optional[str] = None) -> Iterator[None]:
    """Opens a scope of the library for the ops in the block: "module", "autocast", "checkpoint"."""
    trace = current()
    _native.call("pls_scope_push", trace.handle, kind.encode(), None if argument is None else argument.encode())
    try:
        yield
    finally:
        if trace.handle:
            _native.call("pls_scope_pop", trace.handle)


@contextlib.contextmanager
def entered(module: Module) -> Iterator[None]:
    """Opens the module's scope for the ops in the block. The scope is named by its path below the enclosing scope."""
    trace = current()
    name = trace.names.get(id(module))
    if not name:
        yield
        return
    around = trace.path
    inside = name[len(around) + 1:] if around and name.startswith(f"{around}.") else name
    with scope("module", inside):
        trace.path = name
        try:
            yield
        finally:
            trace.path = around


def operand(item: Any) -> Value:
    """A value of the current trace for a value, a parameter or an array."""
    trace = current()
    if isinstance(item, Value):
        if item.trace is not trace:
            raise SettingError(f"{item!r} belongs to another plan", "do not keep values from one forward() to the next")
        return item
    if isinstance(item, (Parameter, Buffer)):
        found = trace.parameters.get(id(item))
        if found is None:
            raise SettingError(f"{item!r} is no parameter of the module that is planned",
                               "assign it, or the module that holds it, to an attribute")
        return found
    if isinstance(item, Operand) or hasattr(item, "__array_interface__") or hasattr(item, "__dlpack__"):
        return trace.constant(item)
    raise SettingError(f"expected a value, got a {type(item).__name__}",
                       "values are the inputs of forward(), parameters, arrays, and the results of functions")


def append(name: str, operands: Sequence[Any], **attributes: Any) -> Value:
    """The one result of an op. Operands that are None are omitted."""
    values = [None if item is None else operand(item) for item in operands]
    while values and values[-1] is None:
        values.pop()
    return current().op(name, values, {k: v for k, v in attributes.items() if v is not None}, 1)[0]

