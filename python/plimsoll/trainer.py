"""``Trainer``: fine-tunes known model families, with the argument names of transformers. It runs what ``plimsoll train`` runs."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _native
from .arguments import TrainingArguments
from .callbacks import Callback, Run, StepEvent
from .errors import SettingError, nearest
from .planning import Plan

# Arguments of transformers' Trainer without a counterpart, and the hint of the error.
_INSTEAD = {"tokenizer": "the tokenizer in the model's directory is read", "data_collator": "rows are packed or padded here",
            "processing_class": "the tokenizer in the model's directory is read",
            "compute_metrics": "evaluation gives the loss, and a classifier's metrics",
            "optimizers": "set args.optim and args.lr_scheduler_type", "model_init": "give the model's directory"}
Data = Union[str, "os.PathLike[str]", Sequence[str], Iterable[Mapping[str, Any]], None]


class TrainOutput(NamedTuple):
    """The result of a run."""

    #: number of optimizer steps, those before a resumed checkpoint included
    global_step: int
    #: the mean loss over the steps of this call
    training_loss: float
    #: the summary of the run and its last evaluation
    metrics: Dict[str, Any]


class Trainer:
    """Fine-tunes a model's directory, as transformers' ``Trainer``.

    :param model: a Hugging Face model directory (``config.json``, safetensors), or a map of a run file's ``model`` section,
        ``{"preset": "gpt2", "init": "random"}``. A directory without weights is initialised randomly from its config.
    :param train_dataset: a file, a glob or several (.txt, .jsonl, .npy, token shards), or an iterable of dicts, the rows of
        a .jsonl file.
    :param eval_dataset: the same, for evaluation.
    """

    def __init__(self, model: Union[str, "os.PathLike[str]", Mapping[str, Any]], args: Optional[TrainingArguments] = None,
                 train_dataset: Data = None, eval_dataset: Data = None,
                 callbacks: Optional[Sequence[Callback]] = None, **others: Any) -> None:
        for name, value in others.items():
            if value is not None:
                raise SettingError(f"Trainer: there is no argument {name!r}", _INSTEAD.get(
                    name, nearest(name, ("model", "args", "train_dataset", "eval_dataset", "callbacks"), "arguments")))
        if args is not None and not isinstance(args, TrainingArguments):
            raise SettingError(f"Trainer: args is a {type(args).__name__}", "plimsoll.TrainingArguments has the same names")
        self.model, self.args = model, args if args is not None else TrainingArguments()
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.callbacks: List[Callback] = [c() if isinstance(c, type) else c for c in callbacks or ()]
        self._rows = _RowFiles()
        #: the fields of each ``step`` and ``eval`` event, as transformers' ``state.log_history``
        self.log_history: List[Dict[str, Any]] = []

    def add_callback(self, callback: Callback) -> None:
        """Adds a callback."""
        self.callbacks.append(callback() if isinstance(callback, type) else callback)

    def plan(self) -> Plan:
        """Plans the run; reads no data and no weights."""
        settings = _native.text(self._settings())
        return Plan(_native.create("pls_plan_run", None, settings, _native.texts([]), 0), is_run=True)

    def train(self, resume_from_checkpoint: Union[bool, str, "os.PathLike[str]", None] = None) -> TrainOutput:
        """Trains to the end and writes ``output_dir/final``.

        :param resume_from_checkpoint: ``True``: continues from the newest checkpoint of ``output_dir``, if there is one; a
            folder: continues from that checkpoint; otherwise the run starts from scratch.
        """
        if self.train_dataset is None:
            raise SettingError("Trainer: there is no train_dataset", 'train_dataset="data/*.jsonl"')
        resume = "never" if not resume_from_checkpoint else "auto"
        if resume_from_checkpoint and resume_from_checkpoint is not True:
            resume = os.fspath(resume_from_checkpoint)
        watcher = _Watcher(self)
        _native.watch("pls_train", [None, _native.text(self._settings()), _native.texts([]), 0,
                                    _native.text({"resume": resume})], watcher.receive)
        return watcher.output()

    def evaluate(self) -> Dict[str, Any]:
        """Evaluates the model, as it was before ``train``, on ``eval_dataset``: ``eval_loss`` and other metrics."""
        if self.eval_dataset is None:
            raise SettingError("Trainer: there is no eval_dataset", 'eval_dataset="data/eval.jsonl"')
        found: Dict[str, Any] = {}

        def receive(event: Dict[str, Any]) -> None:
            if event.get("event") == "eval":
                found.update({f"eval_{key}": value for key, value in event.items() if key != "event"})

        _native.watch("pls_evaluate", [None, _native.text(self._settings()), _native.texts([]), 0], receive)
        return found

    def _settings(self) -> Dict[str, Any]:
        run: Dict[str, Any] = {"model": self._model()}
        data = {"train": self._rows.path("train", self.train_dataset), "eval": self._rows.path("eval", self.eval_dataset)}
        run["data"] = {name: path for name, path in data.items() if path is not None}
        for path, value in self.args.run().items():
            *sections, key = path.split(".")
            place = run
            for section in sections:
                place = place.setdefault(section, {})
            place[key] = value
        return run

    def _model(self) -> Dict[str, Any]:
        if isinstance(self.model, Mapping):
            return dict(self.model)
        path = os.fspath(self.model)
        has_config = os.path.isfile(os.path.join(path, "config.json"))
        # A pickle counts: the run refuses it, where a random start would hide it.
        has_weights = os.path.isdir(path) and any(
            name.endswith((".safetensors", ".safetensors.index.json")) or name.startswith("pytorch_model")
            for name in os.listdir(path))
        return {"path": path, "init": "random"} if has_config and not has_weights else {"path": path}


class _Watcher:
    """Receives the events of a run: calls the callbacks and collects the losses and metrics."""

    def __init__(self, trainer: Trainer) -> None:
        steps = trainer.args.to_dict()["max_steps"]
        self.trainer, self.run = trainer, Run(steps if steps > 0 else None)
        self.losses: List[float] = []
        self.metrics: Dict[str, Any] = {}

    def receive(self, event: Dict[str, Any]) -> bool:
        """Handles an event. Returns true if the run is to stop."""
        kind = event.pop("event", "")
        if kind == "plan":
            self._each("on_train_begin", event)
        elif kind == "step":
            self.run.global_step = int(event["step"])
            if not event.get("skipped"):
                self.losses.append(float(event["loss"]))
            self.trainer.log_history.append(dict(event))
            self._each("on_step_end", StepEvent(event))
        elif kind == "eval":
            named = {f"eval_{key}": value for key, value in event.items()}
            self.metrics.update(named)
            self.trainer.log_history.append(named)
            self._each("on_evaluate", StepEvent(event))
        elif kind == "checkpoint":
            self._each("on_save", StepEvent(event))
        elif kind == "summary":
            self.metrics.update(event)
            self.run.global_step = max(self.run.global_step, int(event.get("steps") or 0))
            self._each("on_train_end", StepEvent(event))
        return self.run.stopped is not None

    def _each(self, name: str, what: Any) -> None:
        for callback in self.trainer.callbacks:
            getattr(callback, name)(self.run, what)

    def output(self) -> TrainOutput:
        """The result of ``train``."""
        mean = sum(self.losses) / len(self.losses) if self.losses else float(self.metrics.get("loss", float("nan")))
        return TrainOutput(self.run.global_step, mean, self.metrics)


class _RowFiles:
    """Writes rows that are given as dicts to temporary files, which are deleted with the trainer."""

    def __init__(self) -> None:
        self._folder: Optional[str] = None
        self._paths: Dict[str, str] = {}

    def path(self, name: str, data: Data) -> Any:
        if data is None or isinstance(data, str):
            return data
        if isinstance(data, os.PathLike):
            return os.fspath(data)
        if isinstance(data, (list, tuple)) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
            return [os.fspath(item) for item in data]
        if name not in self._paths:
            if self._folder is None:
                self._folder = tempfile.mkdtemp(prefix="plimsoll-rows-")
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._paths[name] = _write_rows(os.path.join(self._folder, f"{name}.jsonl"), name, data)
        return self._paths[name]


def _write_rows(path: str, name: str, data: Any) -> str:
    with open(path, "w", encoding="utf-8") as file:
        for index, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise SettingError(f"{name}_dataset: row {index} is a {type(row).__name__}",
                                   'rows are dicts, {"text": …}; a file is given by its path')
            file.write(json.dumps(dict(row), ensure_ascii=False, default=_plain) + "\n")
    return path


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise SettingError(f"a row holds a {type(value).__name__}", "rows hold texts, numbers, lists and dicts")
