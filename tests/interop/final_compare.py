"""Opens what a run leaves with transformers: each output.dtype, in one file and in shards; and stops where it stops.

    python final_compare.py --binary build/plimsoll [--only TEXT]

A model saved by transformers is trained for two steps, once for each dtype and layout; final/ must open without a
missing or unexpected tensor, in the dtype that it says, with the values of the checkpoint's fp32 weights rounded by
torch, and its index must say what save_pretrained says of the same model. Runs that get worse end where EarlyStoppingCallback ends them.
One line per check, PASS or FAIL.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import checks  # noqa: E402

MODELS = [("llama", cases.LLAMA), ("llama, tied", cases.LLAMA | dict(tie_word_embeddings=True)), ("qwen2", cases.QWEN2),
          ("qwen3", cases.QWEN3), ("gpt2", cases.GPT2)]
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
INDEX = "model.safetensors.index.json"


def train(binary, folder, dtype, limit):
    out = folder / f"out-{dtype}-{limit}"
    overrides = dict(zip(("model.path", "data.train", "data.sequence_length", "output.dir", "output.dtype"),
                         (folder / "model", folder / "data.npy", 32, out, dtype)))
    overrides |= {"output.max_shard_size": limit, "output.save_steps": 2, "training.max_steps": 2,
                  "training.global_batch_size": 2, "data.packing": "stream"}
    (folder / "run.yaml").write_text("{}\n")
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), *(f"{k}={v}" for k, v in overrides.items())],
                          text=True, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return out


def compare(name, config, binary, root, report):
    folder = root / name.replace(", ", "-")
    transformers.set_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).to(torch.bfloat16)
    model.save_pretrained(folder / "model")
    numpy.save(folder / "data.npy", numpy.arange(2000, dtype=numpy.int32) * 37 % config["vocab_size"])
    for dtype, limit in (("auto", "null"), ("fp32", "20KB"), ("fp16", "null"), ("bf16", "30KB")):
        out = train(binary, folder, dtype, limit)
        expected = TORCH.get(dtype, torch.bfloat16)
        loaded, info = transformers.AutoModelForCausalLM.from_pretrained(out / "final", dtype="auto", output_loading_info=True)
        exact = safetensors.torch.load_file(out / "checkpoint-2" / "model.safetensors")
        state = {key: value for key, value in loaded.state_dict().items() if key in exact}
        whole = not info["missing_keys"] and not info["unexpected_keys"] and len(state) == len(exact)
        same = all(value.dtype == expected and torch.equal(value, exact[key].to(expected)) for key, value in state.items())
        report.check(name, f"final/ in {dtype}, files of {limit}", whole and same, f"{len(state)} tensors, {loaded.dtype}")
        if limit == "null":
            continue
        loaded.save_pretrained(out / "theirs", max_shard_size=limit)
        ours, theirs = ((out / where / INDEX).read_text() for where in ("final", "theirs"))
        mine, other = json.loads(ours), json.loads(theirs)
        layout = json.dumps(mine, indent=2, sort_keys=True) + "\n" == ours and mine["metadata"] == other["metadata"]
        report.check(name, f"index of files of {limit}", layout and mine["weight_map"].keys() == other["weight_map"].keys(),
                     f"{len(set(mine['weight_map'].values()))} files, transformers {len(set(other['weight_map'].values()))}, "
                     f"{'the same' if ours == theirs else 'another'} division")


def compare_early_stopping(binary, root, report):
    """The evaluations of a run that gets worse, replayed through transformers' callback and its rule for the best."""
    folder = root / "stopping"
    folder.mkdir()
    random = numpy.random.default_rng(1)
    numpy.save(folder / "data.npy", numpy.arange(2000, dtype=numpy.int32) * 37 % 211)
    numpy.save(folder / "eval.npy", random.integers(0, 211, 400, dtype=numpy.int32))
    for patience, threshold in ((2, 0.0), (3, 0.02), (1, 0.5)):
        out = folder / f"out-{patience}"
        settings = {"data.train": folder / "data.npy", "data.eval": folder / "eval.npy", "data.sequence_length": 32,
                    "output.dir": out, "output.save_steps": 2, "training.eval_steps": 2, "training.max_steps": 60,
                    "training.global_batch_size": 2, "training.learning_rate": 3e-3, "training.lr_scheduler": "constant",
                    "load_best_model_at_end": "true", "early_stopping_patience": patience, "save_total_limit": 1,
                    "early_stopping_threshold": threshold, "model.config": json.dumps(cases.LLAMA), "model.init": "random"}
        (folder / "run.yaml").write_text("{}\n")
        done = subprocess.run([binary, "train", str(folder / "run.yaml"), "--json", *(f"{k}={v}" for k, v in settings.items())],
                              text=True, capture_output=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-800:])
        events = [json.loads(line) for line in done.stdout.splitlines()]
        losses = [(event["step"], event["loss"]) for event in events if event["event"] == "eval"]
        summary = events[-1]
        callback = transformers.EarlyStoppingCallback(patience, threshold)
        arguments = types.SimpleNamespace(metric_for_best_model="loss", greater_is_better=False)
        state, control, stopped = transformers.TrainerState(), transformers.TrainerControl(), None
        for step, loss in losses:
            callback.on_evaluate(arguments, state, control, {"eval_loss": loss})
            if state.best_metric is None or loss < state.best_metric:
                state.best_metric, state.best_global_step = loss, step
            if control.should_training_stop and stopped is None:
                stopped = step
        names = {path.name for path in out.glob("checkpoint-*")}
        expected = {f"checkpoint-{step}" for step in (state.best_global_step, losses[-1][0])}
        ok = (stopped == losses[-1][0] and summary["stopped_early"] and summary["best_step"] == state.best_global_step
              and names == expected)
        report.check("early stopping", f"patience {patience}, threshold {threshold}", ok,
                     f"stops at {losses[-1][0]}, transformers {stopped}; best {summary['best_step']}, {state.best_global_step}; "
                     f"{sorted(names)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    arguments = parser.parse_args()
    report = checks.Checks()
    with tempfile.TemporaryDirectory() as temporary:
        for name, config in MODELS:
            if arguments.only in name:
                compare(name, config, arguments.binary, pathlib.Path(temporary), report)
        if arguments.only in "early stopping":
            compare_early_stopping(arguments.binary, pathlib.Path(temporary), report)
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
