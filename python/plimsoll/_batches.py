"""Passes batches to the library: numpy arrays, tensors of other libraries (DLPack, ``__array__``) and lists, without a copy
where possible. No array is kept after the call."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from . import _native
from ._handles import Handle
from .errors import DataError, SettingError

# numpy's names of the types that the library takes, and of those that are converted first.
_TAKEN = {"float32", "float64", "float16", "int32", "int64", "int16", "int8", "uint8", "bool"}
_WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
_CPU_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_DEVICES = {2: "a CUDA device", 4: "an OpenCL device", 8: "a Metal device", 10: "a ROCm device"}


class Batch:
    """A batch handle, which is refilled for each call."""

    def __init__(self) -> None:
        self._handle = Handle(_native.create("pls_batch_create"), "pls_batch_free")
        self._shapes: Dict[Tuple[int, ...], Any] = {}
        self._names: Dict[str, bytes] = {}
        self._types: Dict[Any, bytes] = {}  # numpy's types that are taken as they are; asking one for its name is slow
        self._alive: List[Any] = []

    @property
    def value(self) -> int:
        """The library's handle."""
        return self._handle.value

    def fill(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Sets the arrays of each part and keeps them alive until ``clear``."""
        for part, batch in enumerate(parts):
            if not isinstance(batch, Mapping):
                raise SettingError(f"a batch must be a dict, not a {type(batch).__name__}", 'for example {"x": array}')
            for name, value in batch.items():
                self._set(part, name, value)

    def clear(self) -> None:
        """Releases the arrays."""
        _native.library().pls_batch_clear(self.value)
        self._alive.clear()

    def close(self) -> None:
        """Frees the handle."""
        self._alive.clear()
        self._handle.close()

    def _set(self, part: int, name: str, value: Any) -> None:
        key = self._names.get(name)
        if key is None:
            if not isinstance(name, str):
                raise SettingError(f"a batch has the key {name!r}", "the names of inputs are strings")
            key = self._names[name] = name.encode()
        import numpy

        if isinstance(value, numpy.ndarray):
            array = value
        elif self._set_dlpack(part, key, name, value):
            return
        else:
            array = as_array(f"batch: {name}", value)
        kind = self._types.get(array.dtype)
        if kind is None:
            if array.dtype.name not in _TAKEN or not array.dtype.isnative:
                array = _converted(name, array)
            kind = self._types[array.dtype] = array.dtype.name.encode()
        self._alive.append(array)
        shape, strides = self._shape(array.shape), None
        if not array.flags.c_contiguous:
            if any(stride % array.itemsize for stride in array.strides):
                array = array.copy()
                self._alive.append(array)
            else:
                strides = _native.sizes([stride // array.itemsize for stride in array.strides])
        _native.call("pls_batch_set", self.value, part, key, kind, shape, array.ndim, strides,
                     array.__array_interface__["data"][0])

    def _shape(self, shape: Tuple[int, ...]) -> Any:
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) > 64:
                self._shapes.clear()
            found = self._shapes[shape] = _native.sizes(shape)
        return found

    def _set_dlpack(self, part: int, key: bytes, name: str, value: Any) -> bool:
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            return False
        if hasattr(value, "detach"):
            value = value.detach()
        try:
            device = int(value.__dlpack_device__()[0])
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise SettingError(f"batch: the memory of {name} cannot be read: {error}", "give value.cpu()") from None
        if device not in _CPU_DEVICES:
            raise SettingError(f"batch: {name} is on {_DEVICES.get(device, f'device {device}')}",
                               "batches are read from CPU memory: give value.cpu()")
        try:
            capsule = value.__dlpack__()
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise DataError(f"batch: {name} is not a dense tensor: {error}") from None
        self._alive.append(capsule)
        _native.call("pls_batch_set_dlpack", self.value, part, key, _capsule_pointer(capsule))
        return True


def _capsule_pointer(capsule: Any) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, b"dltensor"))


def as_array(what: str, value: Any) -> Any:
    """A numpy array of a list, a number, or anything with ``__array__``. Errors: DataError that says `what` it is."""
    import warnings

    import numpy

    if hasattr(value, "detach"):
        value = value.detach()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older versions of numpy warn of ragged lists
            array = numpy.asarray(value)
    except Exception as error:
        raise DataError(f"{what} makes no array: {error}", "give numbers, or lists of equal lengths") from None
    if array.dtype.kind not in "fiub":
        raise DataError(f"{what} is a {type(value).__name__} of {array.dtype}", "floats and integers are wanted")
    return array


def _converted(name: str, array: Any) -> Any:
    import numpy

    if array.dtype.kind not in "fiub":
        raise DataError(f"batch: {name} has type {array.dtype}", "expected floats or integers")
    native = array.astype(array.dtype.newbyteorder("="))
    wider = _WIDER.get(native.dtype.name)
    if wider is not None:
        if native.size and int(native.max()) > numpy.iinfo(wider).max:
            raise DataError(f"batch: {name} holds {int(native.max())}, which is beyond {wider}")
        return native.astype(wider)
    if native.dtype.name not in _TAKEN:  # float128
        return native.astype("float64")
    return native


def dense(name: str, value: Any, shape: Tuple[int, ...]) -> Any:
    """A dense float32 array of that shape. Errors: SettingError with the expected and the given shape or type."""
    import numpy

    array = value if isinstance(value, numpy.ndarray) else as_array(f"write {name}:", value)
    if array.dtype.kind not in "fiu":
        raise SettingError(f"write {name}: got {array.dtype}, expected float32")
    if tuple(array.shape) != tuple(shape):
        raise SettingError(f"write {name}: got shape {list(array.shape)}, expected {list(shape)}")
    return numpy.ascontiguousarray(array, numpy.float32).reshape(shape)
