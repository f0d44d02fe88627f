"""Callbacks of a ``Trainer``. All run on the thread that called ``Trainer.train()``, between steps."""
from __future__ import annotations

from typing import Any, Mapping, Optional


class Run:
    """The run that a callback watches."""

    def __init__(self, max_steps: Optional[int]) -> None:
        #: optimizer steps of the whole run, where known
        self.max_steps = max_steps
        #: steps made so far
        self.global_step = 0
        #: why the run was asked to stop; ``None``: it goes on
        self.stopped: Optional[str] = None

    def stop(self, reason: str = "a callback asked for it") -> None:
        """Ends the run after this step; it saves a checkpoint first, so that it can be resumed."""
        self.stopped = reason


class StepEvent:
    """A step that has run: the fields of the program's ``step`` event as attributes (``loss``, ``grad_norm``,
    ``learning_rate``, ``step``, ``step_seconds``, ``tokens_per_second`` …)."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.__dict__.update(event)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the event has no {name}; it has {', '.join(sorted(self.__dict__))}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


class Callback:
    """Derive from this and override what you want to see."""

    def on_train_begin(self, run: Run, plan: Mapping[str, Any]) -> None:
        """The plan stands; the first step follows."""

    def on_step_end(self, run: Run, step: StepEvent) -> None:
        """An optimizer step has run."""

    def on_evaluate(self, run: Run, result: StepEvent) -> None:
        """An evaluation has ended."""

    def on_save(self, run: Run, checkpoint: StepEvent) -> None:
        """A checkpoint is written."""

    def on_train_end(self, run: Run, summary: StepEvent) -> None:
        """The run has ended and the final model is written."""
