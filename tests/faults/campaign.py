#!/usr/bin/env python3
"""Breaks saving in every way and looks at what is left.

    campaign.py calls   --binary build/plimsoll --preload build/tests/libplimsoll_faults.so
                     [--every K] [--anew]
        One save that replaces final/ and rotates the older checkpoint out, with a fault at each call that changes a
        file: killed before it, EIO, ENOSPC from it on, a short write. Afterwards every folder with a name is whole,
        and the same command without the fault ends with the model of the undisturbed run.
    campaign.py signals --binary build/plimsoll --kills 200 --terms 200 [--seed 1]
        Runs that are killed or asked to stop at random moments, and go on with other threads and another micro-batch,
        until they end: with the model of the undisturbed run.

Prints a line a failure and a summary; exits with 1 where anything failed.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Large enough for several writes a file.
WIDE = ("{model_type: llama, vocab_size: 259, hidden_size: 48, intermediate_size: 3000, num_hidden_layers: 1, "
        "num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, max_position_embeddings: 64, rms_norm_eps: 1.0e-5, "
        "tie_word_embeddings: true}")
MODELS = {
    "llama": "{model_type: llama, vocab_size: 259, hidden_size: 24, intermediate_size: 36, num_hidden_layers: 1, "
             "num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, max_position_embeddings: 64, "
             "rms_norm_eps: 1.0e-5, tie_word_embeddings: true}",
    "gpt2": "{model_type: gpt2, vocab_size: 259, n_embd: 24, n_layer: 1, n_head: 2, n_positions: 64, resid_pdrop: 0, "
            "embd_pdrop: 0, attn_pdrop: 0}",
}


def run_file(model, steps, save_steps, limit, evaluates):
    evaluation = "eval_steps: 3, " if evaluates else ""
    return (f"model: {{config: {model}, init: random}}\n"
            f"data: {{train: train.txt, {'eval: eval.txt, ' if evaluates else ''}sequence_length: 32}}\n"
            f"output: {{dir: out, save_steps: {save_steps}, save_total_limit: {limit}}}\n"
            f"training: {{global_batch_size: 4, max_steps: {steps}, {evaluation}learning_rate: 1.0e-3, "
            "lr_scheduler: constant}\n")


def write_inputs(folder, text):
    words = random.Random(7).choices(["the ship ", "is loaded ", "to her line. "], k=1000)
    (folder / "train.txt").write_text("".join(words)[:8000])
    (folder / "eval.txt").write_text("".join(words)[-600:])
    (folder / "run.yaml").write_text(text)


def train(binary, folder, arguments=(), environment=None, timeout=120):
    return subprocess.run([binary, "train", "run.yaml", "runtime.threads=1", *arguments], cwd=folder, timeout=timeout,
                          env={**os.environ, **(environment or {})}, capture_output=True, text=True)


def model_of(folder):
    return (folder / "out/final/model.safetensors").read_bytes()


def preloaded(options):
    return ":".join(library for library in (options.first, options.preload) if library)


class Failures:
    def __init__(self):
        self.lines = []

    def check(self, holds, line):
        if not holds:
            self.lines.append(line)
            print("FAIL", line, flush=True)


class Calls:
    """One faulted run after another, each from the same beginning: a finished run of 2 steps."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        write_inputs(folder, run_file(WIDE, 2, 2, 1, False))
        done = train(options.binary, folder)
        assert done.returncode == 0, done.stderr
        self.begun = folder / "begun"
        shutil.copytree(folder / "out", self.begun)
        self.old_model = model_of(folder)
        done = train(options.binary, folder, ["training.max_steps=4"])
        assert done.returncode == 0, done.stderr
        self.new_model = model_of(folder)
        assert self.new_model != self.old_model

    def restart(self):
        shutil.rmtree(self.folder / "out")
        shutil.copytree(self.begun, self.folder / "out")

    def faulted(self, kind, at=0):
        self.restart()
        again = ["--resume", "never"] if self.options.anew else []
        return train(self.options.binary, self.folder, ["training.max_steps=4", *again],
                     {"LD_PRELOAD": preloaded(self.options), "PLIMSOLL_FAULT_DIR": str(self.folder / "out"),
                      "PLIMSOLL_FAULT_KIND": kind, "PLIMSOLL_FAULT_AT": str(at),
                      "PLIMSOLL_FAULT_LIST": str(self.folder / "calls.txt")})

    def list_calls(self):
        done = self.faulted("list")
        assert done.returncode == 0, done.stderr
        return [line.split(" ", 1)[0] for line in (self.folder / "calls.txt").read_text().splitlines()]

    def check_left(self, what, failures):
        """Whatever has a name is whole."""
        final = self.folder / "out/final"
        failures.check((final / "config.json").exists() and model_of(self.folder) in (self.old_model, self.new_model),
                       f"{what}: final/ is neither the old model nor the new one")
        steps = [p.name for p in (self.folder / "out").glob("checkpoint-*")]
        failures.check(steps or self.options.anew, f"{what}: no checkpoint is left")
        for name in steps:
            missing = [f for f in ("checkpoint.json", "model.safetensors", "optimizer.safetensors", "config.json",
                                   "run.yaml") if not (self.folder / "out" / name / f).exists()]
            failures.check(not missing, f"{what}: {name} lacks {missing}")

    def check_goes_on(self, what, failures):
        done = train(self.options.binary, self.folder, ["training.max_steps=4"])
        failures.check(done.returncode == 0, f"{what}: going on ended with {done.returncode}: {done.stderr[-300:]}")
        failures.check("damaged" not in done.stderr, f"{what}: a checkpoint was damaged: {done.stderr[-300:]}")
        failures.check(model_of(self.folder) == self.new_model, f"{what}: the final model is another one")
        log = {".lock", "events.jsonl", "trainer_state.json", "environment.json"}
        left = sorted(p.name for p in (self.folder / "out").iterdir() if p.name not in log)
        # Where the last checkpoint alone failed, the model was written and the run is finished without it.
        last = [f"checkpoint-{2 if 'nothing is left to do' in done.stderr and 'checkpoint-4' not in left else 4}"]
        failures.check(left == last + ["final", "finished", "plan.json", "run.yaml"] or any(".tmp-" in name for name in left),
                       f"{what}: left behind: {left}")

    def __call__(self, failures):
        calls = self.list_calls()
        counts = collections.Counter(calls)
        print("calls:", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), flush=True)
        ended = collections.Counter()
        for at in range(1, len(calls) + 1, self.options.every):
            name = calls[at - 1]
            for kind in ("kill", "eio", "enospc", "short"):
                if kind == "short" and name not in ("write", "pwrite"):
                    continue
                what = f"{kind} at call {at} ({name})"
                done = self.faulted(kind, at)
                right = {"kill": (-9,), "eio": (74, 0), "enospc": (74, 0), "short": (0,)}[kind]
                failures.check(done.returncode in right, f"{what}: exit {done.returncode}: {done.stderr[-300:]}")
                if done.returncode == 74:
                    failures.check("error: " in done.stderr and "\nhint: " in done.stderr, f"{what}: no message")
                ended[kind, done.returncode] += 1
                self.check_left(what, failures)
                self.check_goes_on(what, failures)
        print("ended:", ", ".join(f"{kind} exit {code}: {n}" for (kind, code), n in sorted(ended.items())))


class Signals:
    """Runs that are interrupted again and again."""

    STEPS = 40

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)

    def undisturbed(self, model):
        write_inputs(self.folder, run_file(MODELS[model], self.STEPS, 3, 2, True))
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        begun = time.monotonic()
        done = train(self.options.binary, self.folder)
        assert done.returncode == 0, done.stderr
        return model_of(self.folder), time.monotonic() - begun

    def start(self):
        threads, micro = self.random.choice([1, 2, 3]), self.random.choice([1, 2, 4])
        return subprocess.Popen([self.options.binary, "train", "run.yaml", "--json", f"runtime.threads={threads}",
                                 f"training.micro_batch_size={micro}"], cwd=self.folder, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __call__(self, failures):
        left = {signal.SIGKILL: self.options.kills, signal.SIGTERM: self.options.terms}
        models, ended, sent, starts = 0, collections.Counter(), collections.Counter(), 0
        while any(left.values()):
            model = list(MODELS)[models % len(MODELS)]
            if models < len(MODELS):
                MODELS_DONE[model] = self.undisturbed(model)
            expected, seconds = MODELS_DONE[model]
            write_inputs(self.folder, run_file(MODELS[model], self.STEPS, 3, 2, True))
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            code, interruptions = None, 0
            while code != 0:
                process = self.start()
                starts += 1
                # Few enough a run that it comes to its end.
                which = self.random.choice([s for s, n in left.items() if n] or [None])
                if which is not None and interruptions < 8:
                    time.sleep(self.random.uniform(0, seconds))
                    if process.poll() is None:
                        process.send_signal(which)
                        left[which] -= 1
                        sent[which.name] += 1
                        interruptions += 1
                errors = process.communicate(timeout=120)[1]
                code = process.returncode
                ended[code] += 1
                failures.check(code in (0, 75, -signal.SIGKILL, -signal.SIGTERM), f"exit {code}: {errors[-300:]}")
                failures.check("damaged" not in errors, f"a checkpoint was damaged: {errors[-300:]}")
                if code not in (0, 75, -signal.SIGKILL, -signal.SIGTERM):
                    return
            failures.check(model_of(self.folder) == expected, f"run {models} ({model}): the final model is another one")
            models += 1
        print(f"signals: {dict(sent)}, {starts} starts, {models} runs to their end, "
              f"exits {dict(sorted(ended.items()))}")


MODELS_DONE = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["calls", "signals"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--preload")
    parser.add_argument("--first", default="", help="a library to be preloaded before, a sanitizer's")
    parser.add_argument("--every", type=int, default=1, help="calls: only each K-th call")
    parser.add_argument("--anew", action="store_true", help="calls: the broken run starts with --resume never")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--terms", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.environ.get("PLIMSOLL_WHOLE_CAMPAIGN"):
        options.every, options.kills, options.terms = 1, max(options.kills, 200), max(options.terms, 200)
    options.binary = str(pathlib.Path(options.binary).resolve())
    if options.what == "calls":
        options.preload = str(pathlib.Path(options.preload).resolve())
    failures = Failures()
    with tempfile.TemporaryDirectory(prefix="plimsoll-faults-") as folder:
        (Calls if options.what == "calls" else Signals)(options, pathlib.Path(folder).resolve())(failures)
    print(f"{options.what}: {len(failures.lines)} failures")
    sys.exit(1 if failures.lines else 0)


if __name__ == "__main__":
    main()
