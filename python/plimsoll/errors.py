"""The errors that Plimsoll raises. Each has a ``hint`` that says what to do, which may be empty.

==================  ====================  =====================================================================
Error               also a                raised for
==================  ====================  =====================================================================
``SettingError``    ``ValueError``        an argument, a module or a setting that cannot be used
``DataError``       ``ValueError``        data, files or checkpoints with wrong contents
``DoesNotFit``      ``MemoryError``       a plan above its budget; ``least_bytes`` is the smallest budget that fits
``Diverged``        ``ArithmeticError``   a loss or gradient that is not finite; the step changed nothing
``UnsupportedOp``   ``NotImplementedError``  an op of a PyTorch module that has no counterpart here
``InternalError``   ``RuntimeError``      a bug of Plimsoll, or a session used in a forked process
==================  ====================  =====================================================================

Files that are missing or cannot be written raise ``OSError``; a ``hint`` is there as well.
"""
from __future__ import annotations

from typing import Iterable, Optional


class PlimsollError(Exception):
    """The base class of Plimsoll's errors: a message, and a ``hint`` that says what to do."""

    hint: str

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhint: {self.hint}" if self.hint else message


class SettingError(PlimsollError, ValueError):
    """An argument, a module or a setting cannot be used."""


class DataError(PlimsollError, ValueError):
    """Data, a file or a checkpoint has wrong contents."""


class DoesNotFit(PlimsollError, MemoryError):
    """The plan needs more than its budget. ``least_bytes`` is the smallest budget in bytes that fits; of a run of ``Trainer``
    it is 0, and the hint names that budget."""

    least_bytes: int

    def __init__(self, message: str, hint: str = "", least_bytes: int = 0) -> None:
        super().__init__(message, hint)
        self.least_bytes = least_bytes


class Diverged(PlimsollError, ArithmeticError):
    """The loss or a gradient is not finite. Parameters and optimizer state are as before the step."""


class UnsupportedOp(PlimsollError, NotImplementedError):
    """A PyTorch module uses an op that has no counterpart here. ``op`` is its name, ``source`` the line that calls it."""

    op: str
    source: str

    def __init__(self, message: str, hint: str = "", op: str = "", source: str = "") -> None:
        super().__init__(message, hint)
        self.op = op
        self.source = source


class InternalError(PlimsollError, RuntimeError):
    """A bug of Plimsoll, or a session that is used in a forked process."""


def file_error(number: int, message: str, hint: str = "") -> OSError:
    """The ``OSError`` (of the subclass that fits ``number``, where it is known and not 0) for a file that cannot be read or
    written."""
    error = OSError(number, message) if number else OSError(message)
    error.hint = hint  # type: ignore[attr-defined]
    return error


def nearest(name: str, known: Iterable[str], what: str = "names") -> str:
    """A hint for an unknown name: the nearest known name if one is close, else the first known names."""
    import difflib

    names = sorted(known)
    close: Optional[str] = next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.5)), None)
    if close is not None:
        return f"did you mean {close}?"
    if not names:
        return f"there are no {what}"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"{what}: {shown}"
