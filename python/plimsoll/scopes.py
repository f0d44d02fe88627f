"""Scopes of the forward pass: checkpointing, and the precision of matrix products."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Sequence

from ._trace import scope
from ._values import Value
from .errors import SettingError

_PRECISIONS = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16",
               "fp32": "fp32", "float32": "fp32"}


def checkpoint(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """``function(*args)``, whose intermediate values are recomputed in the backward pass and not kept.

    As ``torch.utils.checkpoint.checkpoint``. It applies whatever the budget is, and does not change a bit of the result.
    Without it the planner chooses what to recompute if a budget requires it.
    """
    with scope("checkpoint"):
        return function(*args, **named)


def checkpoint_sequential(modules: Sequence[Callable[[Any], Any]], segments: int, x: Any) -> Value:
    """Applies the modules to ``x`` in order, in ``segments`` groups, each of which is a ``checkpoint``."""
    steps = list(modules)
    if isinstance(segments, bool) or not hasattr(segments, "__index__") or not 1 <= segments <= len(steps):
        raise SettingError(f"checkpoint_sequential: {segments!r} segments of {len(steps)} modules",
                           f"give 1 to {len(steps)} segments")
    bounds = [len(steps) * i // segments for i in range(segments + 1)]

    def run(part: Sequence[Callable[[Any], Any]], value: Any) -> Any:
        for step in part:
            value = step(value)
        return value

    for first, last in zip(bounds, bounds[1:]):
        x = checkpoint(run, steps[first:last], x)
    return x  # type: ignore[no-any-return]


@contextlib.contextmanager
def autocast(dtype: str = "bf16", enabled: bool = True) -> Iterator[None]:
    """``with autocast("bf16"):`` matrix products in the block round their operands to that type, as ``torch.autocast``.

    With "fp16" the step scales the loss (``plan(…, loss_scale=…)`` says how) and a step whose gradients overflow changes
    nothing. ``autocast("fp32")`` inside the block returns to fp32.
    """
    precision = _PRECISIONS.get(str(dtype).replace("torch.", ""))
    if precision is None:
        raise SettingError(f"autocast: {dtype!r} is not a precision", "one of bf16, fp16, fp32")
    with scope("autocast", precision if enabled else "fp32"):
        yield
