"""``TrainingArguments``: the arguments of transformers that have a counterpart, with its names, defaults and meanings."""
from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Union

from .errors import SettingError, nearest

_OPTIMIZERS = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw", "adamw_hf": "adamw", "adamw": "adamw", "adam": "adam",
               "adamw_8bit": "adamw_8bit", "adamw_bnb_8bit": "adamw_8bit", "paged_adamw_8bit": "adamw_8bit",
               "paged_adamw": "adamw", "paged_adamw_32bit": "adamw", "adafactor": "adafactor", "sgd": "sgd", "lion": "lion",
               "lion_32bit": "lion", "muon": "muon"}

# Arguments of transformers that are accepted and have no effect.
_HARMLESS = {"overwrite_output_dir", "do_train", "do_eval", "dataloader_num_workers", "dataloader_pin_memory", "disable_tqdm",
             "remove_unused_columns", "save_safetensors", "use_cpu", "no_cuda", "log_level", "gradient_checkpointing_kwargs",
             "torch_empty_cache_steps", "logging_steps", "logging_first_step"}
# Arguments of transformers that have no counterpart, and the hint of the error.
_REFUSED = {
    "neftune_noise_alpha": "no noise is added to embeddings",
    "label_smoothing_factor": "the loss is the plain cross-entropy",
    "group_by_length": "sequences come in a random order; packing=\"best_fit\" saves padding",
    "deepspeed": "memory_budget plans offload by itself",
    "fsdp": "memory_budget plans memory by itself",
    "push_to_hub": "upload output_dir/final with: hf upload",
    "torch_compile": "a plan is compiled already",
    "half_precision_backend": "set bf16=True or fp16=True",
    "data_seed": "seed draws the order of the data as well",
}


class TrainingArguments:
    """The arguments of a ``Trainer``. Defaults are transformers'.

    Not in transformers: ``memory_budget`` (bytes, or a text such as "6GiB", of the process), ``max_length`` (tokens
    per sequence), ``packing``, ``recompute``, ``offload``, ``device``, ``threads``, and ``settings`` for all other settings of
    a run file, such as ``{"training.lr_scheduler_kwargs.num_cycles": 2}``.

    Any other argument is refused, with the nearest known name as a hint.
    """

    def __init__(
            self, output_dir: Union[str, "os.PathLike[str]"] = "trainer_output", *,
            per_device_train_batch_size: int = 8, gradient_accumulation_steps: int = 1, learning_rate: float = 5e-5,
            weight_decay: float = 0.0, adam_beta1: float = 0.9, adam_beta2: float = 0.999, adam_epsilon: float = 1e-8,
            max_grad_norm: Optional[float] = 1.0, num_train_epochs: float = 3.0, max_steps: int = -1,
            lr_scheduler_type: str = "linear", warmup_steps: float = 0, warmup_ratio: Optional[float] = None, seed: int = 42,
            bf16: bool = False, fp16: bool = False, tf32: bool = False, optim: str = "adamw_torch",
            gradient_checkpointing: bool = False, eval_strategy: str = "no", eval_steps: Optional[int] = None,
            save_strategy: str = "steps", save_steps: int = 500, save_total_limit: Optional[int] = None,
            load_best_model_at_end: bool = False, metric_for_best_model: Optional[str] = None,
            greater_is_better: Optional[bool] = None, report_to: Any = None, run_name: Optional[str] = None,
            memory_budget: Union[int, str, None] = None, max_length: Optional[int] = None, packing: Any = None,
            recompute: Any = None, offload: Any = None, device: str = "cpu", threads: Optional[int] = None,
            settings: Optional[Mapping[str, Any]] = None, **others: Any) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "others")}
        for name, value in others.items():
            if name in _REFUSED and value not in (None, False, 0, "", "no"):
                raise SettingError(f"TrainingArguments: {name} has no counterpart here", _REFUSED[name])
            if name not in _REFUSED and name not in _HARMLESS:
                raise SettingError(f"TrainingArguments: there is no argument {name!r}",
                                   nearest(name, [*given, *_HARMLESS], "arguments"))
        if optim not in _OPTIMIZERS:
            raise SettingError(f"TrainingArguments: optim is {optim!r}", nearest(str(optim), _OPTIMIZERS, "optimizers"))
        for name in ("per_device_train_batch_size", "gradient_accumulation_steps"):
            value = given[name]
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingError(f"TrainingArguments: {name} is {value!r}, expected a positive integer")
        self.__dict__.update(given)

    def run(self) -> Dict[str, Any]:
        """The arguments as settings of a run file: dotted path to value."""
        a = self.__dict__
        run: Dict[str, Any] = {
            "output.dir": os.fspath(a["output_dir"]),
            "training.global_batch_size": a["per_device_train_batch_size"] * a["gradient_accumulation_steps"],
            # Under a budget the planner chooses how a batch is split; the results are bit-identical for any split.
            "training.micro_batch_size": "auto" if a["memory_budget"] is not None else a["per_device_train_batch_size"],
            "training.optimizer": _OPTIMIZERS[a["optim"]],
            "training.lr_scheduler": str(getattr(a["lr_scheduler_type"], "value", a["lr_scheduler_type"])),
            "training.max_grad_norm": a["max_grad_norm"] or None,
            "training.logging_steps": 1,
            "runtime.device": a["device"],
        }
        run.update({f"training.{name}": a[name] for name in ("learning_rate", "weight_decay", "seed")})
        if run["training.optimizer"] not in ("sgd", "adafactor"):
            run.update({f"training.{name}": a[name] for name in ("adam_beta1", "adam_beta2")})
            if run["training.optimizer"] != "lion":
                run["training.adam_epsilon"] = a["adam_epsilon"]
        if a["max_steps"] > 0:
            run["training.max_steps"] = a["max_steps"]
        else:
            run["training.num_epochs"] = a["num_train_epochs"]
        ratio = a["warmup_ratio"] or (a["warmup_steps"] if 0 < a["warmup_steps"] < 1 else 0)
        if ratio:
            run["training.warmup_ratio"] = ratio
        elif a["warmup_steps"]:
            run["training.warmup_steps"] = int(a["warmup_steps"])
        run.update({"training.precision": word for word in ("tf32", "fp16", "bf16") if a[word]})
        run.update(self._memory())
        run.update(self._output())
        run.update(a["settings"] or {})
        return run

    def _memory(self) -> Dict[str, Any]:
        a = self.__dict__
        run: Dict[str, Any] = {}
        if a["memory_budget"] is not None:
            run["memory.budget"] = a["memory_budget"]
        elif a["gradient_checkpointing"]:
            run["memory.recompute"] = "full"  # under a budget the planner chooses what to recompute
        for name in ("recompute", "offload"):
            if a[name] is not None:
                run[f"memory.{name}"] = a[name]
        if a["max_length"] is not None:
            run["data.sequence_length"] = a["max_length"]
        if a["packing"] is not None:
            run["data.packing"] = a["packing"]
        if a["threads"] is not None:
            run["runtime.threads"] = a["threads"]
        return run

    def _output(self) -> Dict[str, Any]:
        a = self.__dict__
        run: Dict[str, Any] = {"output.save_strategy": a["save_strategy"], "training.eval_strategy": a["eval_strategy"]}
        if a["save_strategy"] == "steps":
            run["output.save_steps"] = a["save_steps"]
        if a["save_total_limit"] is not None:
            run["output.save_total_limit"] = a["save_total_limit"]
        if a["eval_steps"] is not None:
            run["training.eval_steps"] = a["eval_steps"]
        if a["load_best_model_at_end"]:
            run["training.load_best_model_at_end"] = True
        for name in ("metric_for_best_model", "greater_is_better", "run_name"):
            if a[name] is not None:
                run[f"training.{name}"] = a[name]
        if a["report_to"] not in (None, "none", "all", [], ["none"]):
            run["training.report_to"] = a["report_to"]
        return run

    def to_dict(self) -> Dict[str, Any]:
        """All arguments by name."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        return f"TrainingArguments({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items() if v is not None)})"
