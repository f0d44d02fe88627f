"""Opens what a run's folder holds beside its model with those that it is for: TensorBoard and transformers.

    python run_folder_compare.py --binary build/plimsoll

A run ends, loses its last checkpoints and goes on: TensorBoard must show each step once, with the values of the --json
events, and transformers' TrainerState must load trainer_state.json with the same. One line per check, PASS or FAIL.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import transformers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import cases

TAGS = {"train/loss": "loss_mean", "train/grad_norm": "grad_norm", "train/learning_rate": "learning_rate"}


def train(binary, folder):
    overrides = {"data.train": folder / "data.npy", "data.eval": folder / "data.npy", "data.max_eval_samples": 4,
                 "data.sequence_length": 32, "data.packing": "stream", "output.dir": folder / "out",
                 "output.save_steps": 2, "training.max_steps": 7, "training.eval_steps": 3,
                 "training.global_batch_size": 2, "report_to": "tensorboard", "model.init": "random"}
    (folder / "run.yaml").write_text(json.dumps({"model": {"config": cases.LLAMA}}) + "\n")
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), *(f"{k}={v}" for k, v in overrides.items())],
                          text=True, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    binary = str(parser.parse_args().binary.resolve())
    failed = 0

    def check(name, holds):
        nonlocal failed
        failed += not holds
        print(("PASS" if holds else "FAIL"), name)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        numpy.save(folder / "data.npy", numpy.arange(2000, dtype=numpy.int32) * 37 % cases.LLAMA["vocab_size"])
        train(binary, folder)
        for later in ("checkpoint-6", "checkpoint-7", "final"):
            shutil.rmtree(folder / "out" / later)
        train(binary, folder)
        events = [json.loads(line) for line in (folder / "out" / "events.jsonl").read_text().splitlines()]
        steps = [e for e in events if e["event"] == "step"]
        evals = [e for e in events if e["event"] == "eval"]
        check("events.jsonl has each step once", [e["step"] for e in steps] == list(range(1, 8)))
        board = EventAccumulator(str(folder / "out" / "runs"))
        board.Reload()
        for tag, key in TAGS.items():
            shown = [(s.step, s.value) for s in board.Scalars(tag)]
            check(f"TensorBoard shows {tag}", shown == [(e["step"], float(numpy.float32(e[key]))) for e in steps])
        shown = [(s.step, s.value) for s in board.Scalars("eval/loss")]
        check("TensorBoard shows eval/loss", shown == [(e["step"], float(numpy.float32(e["loss"]))) for e in evals])
        state = transformers.TrainerState.load_from_json(str(folder / "out" / "trainer_state.json"))
        check("TrainerState has its step", state.global_step == 7 and state.max_steps == 7)
        check("log_history has the losses",
              [h["loss"] for h in state.log_history if "loss" in h] == [e["loss_mean"] for e in steps]
              and [h["eval_loss"] for h in state.log_history if "eval_loss" in h] == [e["loss"] for e in evals])
        check("log_history ends with the run", {"train_loss", "train_runtime", "train_samples_per_second",
              "train_steps_per_second", "total_flos"} <= state.log_history[-1].keys())
        early = transformers.TrainerState.load_from_json(str(folder / "out" / "checkpoint-4" / "trainer_state.json"))
        check("a checkpoint has its own", early.global_step == 4 and early.log_history[-1]["step"] == 4)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
