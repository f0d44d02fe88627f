"""Ownership of the library's objects: freed with their Python objects, at the interpreter's exit, and never in a fork."""
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
    """An object of the library, freed by ``function`` once nothing refers to this any more, or by ``close``."""

    __slots__ = ("value", "pid", "_finalizer", "__weakref__")

    def __init__(self, value: int, function: str) -> None:
        self.value, self.pid = value, os.getpid()
        self._finalizer: Any = weakref.finalize(self, _release, function, value, self.pid)

    def close(self) -> None:
        """Frees it now. Does nothing the second time."""
        self.value = 0
        self._finalizer()

    def check_process(self, what: str) -> None:
        """Errors: InternalError in a process that was forked after this was made."""
        if os.getpid() != self.pid:
            raise InternalError(f"this {what} was made before fork(), in process {self.pid}",
                                "make plans and sessions in the process that uses them")
