"""Owns the library's objects: they are freed with their Python objects or at the interpreter's exit, never in a forked process."""
from __future__ import annotations

import os
import weakref
from typing import Any

from . import _native
from .errors import InternalError


def _release(function: str, value: int, pid: int) -> None:
    if os.getpid() == pid:  # a forked process has a copy of the memory and none of the threads
        getattr(_native.library(), function)(value)


class Handle:
    """An object of the library. ``function`` frees it when this object is garbage-collected, or at ``close``."""

    __slots__ = ("value", "pid", "_finalizer", "__weakref__")

    def __init__(self, value: int, function: str) -> None:
        self.value, self.pid = value, os.getpid()
        self._finalizer: Any = weakref.finalize(self, _release, function, value, self.pid)

    def close(self) -> None:
        """Frees the object. A second call does nothing."""
        self.value = 0
        self._finalizer()

    def check_process(self, what: str) -> None:
        """Errors: InternalError in a process that was forked after this was made."""
        if os.getpid() != self.pid:
            raise InternalError(f"this {what} was made before fork(), in process {self.pid}",
                                "make plans and sessions in the process that uses them")
