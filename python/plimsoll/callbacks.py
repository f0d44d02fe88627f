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
    """The base class of callbacks: override the methods that you need."""

    def on_train_begin(self, run: Run, plan: Mapping[str, Any]) -> None:
        """Called when the plan is made, before the first step."""

    def on_step_end(self, run: Run, step: StepEvent) -> None:
        """Called after an optimizer step."""

    def on_evaluate(self, run: Run, result: StepEvent) -> None:
        """Called after an evaluation."""

    def on_save(self, run: Run, checkpoint: StepEvent) -> None:
        """Called after a checkpoint was written."""

    def on_train_end(self, run: Run, summary: StepEvent) -> None:
        """Called when the run has ended and the final model is written."""


class Progress(Callback):
    """Shows the progress of the run in one line that is rewritten, in a notebook or in a terminal.

    :param every: steps between two updates.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = max(1, int(every))
        self._display: Any = None

    def on_step_end(self, run: Run, step: StepEvent) -> None:
        """Rewrites the line."""
        if step.step % self.every == 0:
            total = f"/{run.max_steps}" if run.max_steps else ""
            self._show(f"step {step.step}{total}  loss {step.loss:.4f}  rate {step.learning_rate:.3g}  "
                       f"{step.step_seconds * 1e3:.0f} ms per step")

    def on_train_end(self, run: Run, summary: StepEvent) -> None:
        """Ends the line."""
        if self._display is None:
            print()

    def _show(self, text: str) -> None:
        import sys

        if "ipykernel" not in sys.modules:
            print(f"\r{text}", end="", flush=True)
            return
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        if self._display is None:
            self._display = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._display.update({"text/plain": text}, raw=True)
