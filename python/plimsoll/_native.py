"""Finds libplimsoll.so.0, declares its functions to ctypes and converts its errors to exceptions.

The library is opened at its first use, not by ``import plimsoll``. Only this file has the signatures of its functions.
ctypes releases the interpreter's lock during each call.
"""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import errors

ABI_VERSION = 1
NONE = -1
MAX_RANK = 8
STEP_RESULTS = 6

_p, _s = ctypes.c_void_p, ctypes.c_char_p
_i, _i64, _size, _double = ctypes.c_int, ctypes.c_int64, ctypes.c_size_t, ctypes.c_double
_int64s, _values = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int32)
_handle, _texts = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_char_p)
OnEvent = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

# name -> (result, arguments). A function that returns a code has the error as its last argument.
_FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "pls_version": (_s, []),
    "pls_abi_version": (_i, []),
    "pls_ops": (_s, []),
    "pls_order": (_i, [_i64, _i64, _i64, _i64, _i64, _p, _handle]),
    "pls_error_code": (_i, [_p]),
    "pls_error_message": (_s, [_p]),
    "pls_error_hint": (_s, [_p]),
    "pls_error_json": (_s, [_p]),
    "pls_error_free": (None, [_p]),
    "pls_builder_create": (_i, [_handle, _handle]),
    "pls_builder_free": (None, [_p]),
    "pls_input": (_i, [_p, _s, _s, _int64s, _i, _values, _handle]),
    "pls_parameter": (_i, [_p, _s, _int64s, _i, _s, _values, _handle]),
    "pls_constant": (_i, [_p, _s, _s, _int64s, _i, _p, _values, _handle]),
    "pls_op": (_i, [_p, _s, _values, _size, _s, _values, _size, _handle]),
    "pls_value_type": (_i, [_p, ctypes.c_int32, _texts, _int64s, ctypes.POINTER(_i), _handle]),
    "pls_scope_push": (_i, [_p, _s, _s, _handle]),
    "pls_scope_pop": (_i, [_p, _handle]),
    "pls_loss": (_i, [_p, ctypes.c_int32, _handle]),
    "pls_plan_create": (_i, [_p, _s, _handle, _handle]),
    "pls_plan_run": (_i, [_s, _s, _texts, _size, _handle, _handle]),
    "pls_plan_free": (None, [_p]),
    "pls_plan_fits": (_i, [_p]),
    "pls_plan_peak_bytes": (_i64, [_p]),
    "pls_plan_json": (_s, [_p]),
    "pls_plan_text": (_i, [_p, _s, _texts, _handle]),
    "pls_batch_create": (_i, [_handle, _handle]),
    "pls_batch_free": (None, [_p]),
    "pls_batch_clear": (None, [_p]),
    "pls_batch_set": (_i, [_p, _i64, _s, _s, _int64s, _i, _int64s, _p, _handle]),
    "pls_batch_set_dlpack": (_i, [_p, _i64, _s, _p, _handle]),
    "pls_session_create": (_i, [_p, _s, _handle, _handle]),
    "pls_session_free": (None, [_p]),
    "pls_session_step": (_i, [_p, _p, _double, _i64, _int64s, ctypes.POINTER(_double), _size, _handle]),
    "pls_session_evaluate": (_i, [_p, _p, ctypes.POINTER(_double), _handle]),
    "pls_session_gradients": (_i, [_p, _p, _i64, ctypes.POINTER(_double), _handle]),
    "pls_session_read": (_i, [_p, _s, _s, _p, _i64, _handle]),
    "pls_session_write": (_i, [_p, _s, _p, _i64, _handle]),
    "pls_session_view": (_i, [_p, _s, _handle, _int64s, _handle]),
    "pls_session_steps": (_i64, [_p]),
    "pls_session_json": (_s, [_p]),
    "pls_session_save": (_i, [_p, _s, _s, _handle]),
    "pls_session_load": (_i, [_p, _s, _handle]),
    "pls_train": (_i, [_s, _s, _texts, _size, _s, OnEvent, _p, _handle]),
    "pls_evaluate": (_i, [_s, _s, _texts, _size, OnEvent, _p, _handle]),
    "pls_generate": (_i, [_s, OnEvent, _p, _handle]),
}

_library: Optional[ctypes.CDLL] = None


def _path() -> str:
    named = os.environ.get("PLIMSOLL_LIBRARY")
    if named:
        return named
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libplimsoll.so.0")
    return inside if os.path.exists(inside) else "libplimsoll.so.0"


def library() -> ctypes.CDLL:
    """The library, opened at the first call. Errors: ImportError where it is missing or too old."""
    global _library
    if _library is not None:
        return _library
    name = _path()
    try:
        opened = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"plimsoll: {name} cannot be opened: {error}. Set PLIMSOLL_LIBRARY to the path of "
                          "libplimsoll.so.0, or install the wheel, which contains it") from None
    for function, (result, arguments) in _FUNCTIONS.items():
        try:
            bound = getattr(opened, function)
        except AttributeError:
            raise ImportError(f"plimsoll: {name} has no {function}: its version is not that of this package") from None
        bound.restype, bound.argtypes = result, arguments
    if opened.pls_abi_version() < ABI_VERSION:
        raise ImportError(f"plimsoll: {name} is older than this package (interface {opened.pls_abi_version()}, "
                          f"{ABI_VERSION} is needed)")
    _library = opened
    return opened


def exception_of(error: Optional[int], code: int) -> BaseException:
    """The exception for an error handle, which is freed."""
    lib = library()
    message, hint, more = "", "", {}
    if error:
        message = lib.pls_error_message(error).decode("utf-8", "replace")
        hint = lib.pls_error_hint(error).decode("utf-8", "replace")
        try:
            more = json.loads(lib.pls_error_json(error).decode("utf-8", "replace"))
        except ValueError:
            pass
        lib.pls_error_free(error)
    if code == 2:
        return errors.SettingError(message, hint)
    if code == 65:
        return errors.DataError(message, hint)
    if code == 69:
        return errors.DoesNotFit(message, hint, int(more.get("least_bytes") or 0))
    if code == 74:
        return errors.file_error(int(more.get("errno") or 0), message, hint)
    if code == 75:
        return KeyboardInterrupt(message)
    if code == 76:
        return errors.Diverged(message, hint)
    return errors.InternalError(message or f"libplimsoll answered {code}", hint)


def call(function: str, *arguments: Any) -> None:
    """Calls a function that returns a code, and raises the exception for its error."""
    error = ctypes.c_void_p()
    code = getattr(_library or library(), function)(*arguments, ctypes.byref(error))
    if code != 0:
        raise exception_of(error.value, code)


def create(function: str, *arguments: Any) -> int:
    """Calls a function whose arguments are followed by the handle that it creates, and returns the handle."""
    handle = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(handle))
    return int(handle.value or 0)


def sizes(shape: Sequence[int]) -> Any:
    """A shape as an array of int64."""
    return (ctypes.c_int64 * max(1, len(shape)))(*shape)


def text(value: Any) -> Optional[bytes]:
    """UTF-8 of a string; JSON of anything else; ``None`` for ``None`` and an empty dict."""
    if value is None or value == {}:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, default=_number).encode()


def _number(value: Any) -> Any:
    """A number of numpy's or another library's as Python's. Errors: SettingError."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise errors.SettingError(f"a {type(value).__name__} came where a number, a text, a list or a map is wanted")


def texts(values: Sequence[str]) -> Any:
    """An array of C strings."""
    return (ctypes.c_char_p * max(1, len(values)))(*[value.encode() for value in values])


def plan_text(plan: int, what: str) -> str:
    """The plan's "table" or "timeline"."""
    found = ctypes.c_char_p()
    call("pls_plan_text", plan, what.encode(), ctypes.byref(found))
    return (found.value or b"").decode()


def order(seed: int, epoch: int, positions: Any) -> None:
    """Fills ``positions``, int64 [rows], with the order of an epoch."""
    call("pls_order", seed, epoch, positions.size, 0, positions.size, positions.ctypes.data)


def watch(function: str, before: Sequence[Any], on_event: Optional[Callable[[Dict[str, Any]], Any]]) -> None:
    """Runs a whole command and passes its events to ``on_event``, which stops the run by returning true or by raising.

    Ctrl-C stops the run, which saves a checkpoint; then KeyboardInterrupt is raised. Until then a SIGINT handler of the main
    thread only records the signal, because an exception within a callback from C would be lost.
    """
    import signal
    import threading

    raised: List[BaseException] = []
    interrupted: List[bool] = []

    def receive(line: bytes, user: Any) -> int:
        if interrupted or raised:
            return 1
        if on_event is None:
            return 0
        try:
            return 1 if on_event(json.loads(line.decode("utf-8", "replace"))) else 0
        except BaseException as error:  # it is raised again after the call
            raised.append(error)
            return 1

    callback = OnEvent(receive)
    is_main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT) if is_main else None
    if is_main and previous is not None:
        signal.signal(signal.SIGINT, lambda number, frame: interrupted.append(True))
    try:
        call(function, *before, callback, None)
    except KeyboardInterrupt:
        if not raised and not interrupted:
            return  # what `on_event` returned
    except Exception:
        if not raised:
            raise
    finally:
        if is_main and previous is not None:
            signal.signal(signal.SIGINT, previous)
    if raised:
        raise raised[0]
    if interrupted:
        raise KeyboardInterrupt
