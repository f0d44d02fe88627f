#!/usr/bin/env python3
"""Refuses what a run asks of the operating system, call by call: what it reads, its threads, its processes, its memory.

    sides.py --binary build/plimsoll --preload build/tests/libplimsoll_faults.so [--sample N] [--seed S] [--first LIBRARY]

A run of four steps with a tokenizer, a mixture of two texts, checkpoints, the optimizer's state on a disk; it goes on from
a finished run of two. Each faulted run ends with one of the contract's exit codes and a message, writes nothing to a file
that is closed, leaves final/ whole (the old model or the new one) and a checkpoint; the same command without the fault then
ends with the model of the undisturbed run. What ends well in spite of a fault has left all that the undisturbed run leaves.

Without --sample every call is refused once: alone, from there on, and, where bytes move, by half. Of the heap's requests,
which are hundreds of thousands, 300 are, drawn by the seed. --first: preloaded before the faults, a sanitizer's runtime.
Prints a line a failure and a summary; exits with 1 where anything failed.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from campaign import Failures, model_of, preloaded, write_inputs

RUN = """model: {config: {model_type: llama, vocab_size: 280, hidden_size: 24, intermediate_size: 36, num_hidden_layers: 1,
  num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, max_position_embeddings: 64, rms_norm_eps: 1.0e-5,
  tie_word_embeddings: true}, init: random}
data: {train: [train.txt, more.txt], weights: [1.0e-310, 2.0e-310], eval: eval.txt, tokenizer: tok, sequence_length: 32}
output: {dir: out, save_steps: 2, save_total_limit: 1}
memory: {offload: {optimizer: disk}}
training: {global_batch_size: 4, max_steps: 2, learning_rate: 1.0e-3, lr_scheduler: constant}
"""
KINDS = {"read": ("eio", "gone", "short"), "thread": ("eio", "gone"), "process": ("eio", "gone"), "memory": ("eio", "gone")}
MOVES = ("read", "pread")
CODES = (0, 2, 65, 69, 74, 75, 76)
MOST_REQUESTS = 300


class Sides:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        write_inputs(folder, RUN)
        (folder / "more.txt").write_text((folder / "train.txt").read_text()[:3000])
        self.run(["data", "tokenizer", "--input", "train.txt", "--vocab-size", "280", "--output", "tok"], must=True)
        self.train([], must=True)
        self.begun = folder / "begun"
        shutil.copytree(folder / "out", self.begun)
        self.old_model = model_of(folder)
        self.train(["training.max_steps=4"], must=True)
        self.new_model, self.new_files = model_of(folder), self.files()
        assert self.new_model != self.old_model

    def run(self, arguments, environment=None, must=False):
        done = subprocess.run([self.options.binary, *arguments], cwd=self.folder, timeout=60, capture_output=True, text=True,
                              errors="replace", env={**os.environ, "XDG_CACHE_HOME": "/dev/null", **(environment or {})})
        assert not must or done.returncode == 0, done.stderr
        return done

    def train(self, overrides, environment=None, must=False):
        return self.run(["train", "run.yaml", "runtime.threads=2", *overrides], environment, must)

    def files(self):
        """Of what was saved; a trained model's card and what the log keeps are no part of it."""
        out = self.folder / "out"
        return sorted(str(p.relative_to(out)) for top in ("final", "checkpoint-4") for p in (out / top).rglob("*"))

    def faulted(self, side, kind, at=0, match=None):
        shutil.rmtree(self.folder / "out")
        shutil.copytree(self.begun, self.folder / "out")
        environment = {"LD_PRELOAD": preloaded(self.options), "PLIMSOLL_FAULT_DIR": str(self.folder),
                       "PLIMSOLL_FAULT_SIDE": side, "PLIMSOLL_FAULT_KIND": kind, "PLIMSOLL_FAULT_AT": str(at),
                       "PLIMSOLL_FAULT_LIST": str(self.folder.parent / f"{self.folder.name}.calls"),
                       "PLIMSOLL_FAULT_SLOW": "1000" if side == "read" else "0"}
        if match:
            environment["PLIMSOLL_FAULT_MATCH"] = match
        if self.options.first:
            environment["ASAN_OPTIONS"] = "exitcode=99:allocator_may_return_null=1:detect_leaks=0"
            environment["UBSAN_OPTIONS"] = "exitcode=99:print_stacktrace=1"
        return self.train(["training.max_steps=4"], environment)

    def list_calls(self, side, match=None):
        done = self.faulted(side, "list", match=match)
        assert done.returncode == 0, done.stderr
        calls = self.folder.parent / f"{self.folder.name}.calls"
        names = [line.split(" ", 1)[0] for line in calls.read_text(errors="replace").splitlines()]
        calls.unlink()
        return names

    def refused(self):
        """The call that was, as a line; threads take turns, so that a number is now one call, now another."""
        calls = self.folder.parent / f"{self.folder.name}.calls"
        return calls.read_text(errors="replace").splitlines() if calls.exists() else []

    def check_ended(self, what, done, failures):
        failures.check(done.returncode in CODES, f"{what}: exit {done.returncode}: {done.stderr[-400:]}")
        if done.returncode != 0:
            failures.check("error: " in done.stderr and "\nhint: " in done.stderr,
                           f"{what}: exit {done.returncode} without a message: {done.stderr[-300:]}")
        told = done.stderr
        if self.options.first:  # a sanitizer holds back what was freed, by the megabyte: no plan knows how much
            told = re.sub(r"warning: this process uses .* more than its plan of .*", "", told)
        for word in ("fault: ", "bug: ", "terminate called"):
            failures.check(word not in told, f"{what}: {told[-400:]}")

    def check_left(self, what, code, failures):
        final = self.folder / "out/final"
        failures.check(final.exists() and model_of(self.folder) in (self.old_model, self.new_model),
                       f"{what}: final/ is neither the old model nor the new one")
        failures.check(list((self.folder / "out").glob("checkpoint-*")), f"{what}: no checkpoint is left")
        if code == 0:
            failures.check(model_of(self.folder) == self.new_model, f"{what}: ended well with another model")
            failures.check(self.files() == self.new_files,
                           f"{what}: ended well without {sorted(set(self.new_files) ^ set(self.files()))}")
            return
        done = self.train(["training.max_steps=4"])
        failures.check(done.returncode == 0, f"{what}: going on ended with {done.returncode}: {done.stderr[-300:]}")
        failures.check("damaged" not in done.stderr, f"{what}: a checkpoint was damaged: {done.stderr[-300:]}")
        failures.check(model_of(self.folder) == self.new_model, f"{what}: the final model is another one")

    def one(self, side, kind, at, name, failures):
        what = f"{side}: {kind} at call {at} ({name})"
        try:
            done = self.faulted(side, kind, at)
            what = f"{side}: {kind} at call {at} ({', '.join(self.refused()) or name})"
            self.check_ended(what, done, failures)
            if kind == "short":
                failures.check(done.returncode == 0, f"{what}: exit {done.returncode}: {done.stderr[-300:]}")
            self.check_left(what, done.returncode, failures)
            return done.returncode
        except subprocess.TimeoutExpired:
            failures.check(False, f"{what}: it hangs")
            return "hangs"

    def last_save(self, failures):
        """What the last save cannot read from the disk takes the checkpoint with it, not the model."""
        reads = len(self.list_calls("read", "(deleted)"))
        if reads == 0:
            return  # the file system names files that have none otherwise
        done = self.faulted("read", "eio", reads, "(deleted)")
        what = f"read {reads} of the disk, the last one of the last save"
        self.check_ended(what, done, failures)
        failures.check(done.returncode == 74, f"{what}: exit {done.returncode}: {done.stderr[-300:]}")
        failures.check(model_of(self.folder) == self.new_model, f"{what}: final/ is not written")

    def chosen(self, draw):
        """(side, kind, number, name) of each run."""
        for side, kinds in KINDS.items():
            names = self.list_calls(side)
            counts = collections.Counter(names)
            print(f"{side}:", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), flush=True)
            numbers = range(1, len(names) + 1)
            if side == "memory":  # mappings all, of the heap some
                heap = [n for n in numbers if names[n - 1] != "mmap"]
                numbers = sorted({n for n in numbers if names[n - 1] == "mmap"} |
                                 set(draw.sample(heap, min(MOST_REQUESTS, len(heap)))))
            runs = [(side, kind, n, names[n - 1]) for n in numbers for kind in kinds
                    if kind != "short" or names[n - 1] in MOVES]
            if self.options.sample:
                share = max(1, self.options.sample * {"read": 5, "memory": 3}.get(side, 1) // 10)
                runs = sorted(draw.sample(runs, min(share, len(runs))))
            yield from runs

    def __call__(self, failures):
        self.last_save(failures)
        ended = collections.Counter()
        for side, kind, at, name in self.chosen(random.Random(self.options.seed)):
            ended[side, kind, self.one(side, kind, at, name, failures)] += 1
        print("ended:", ", ".join(f"{side} {kind} {code}: {n}" for (side, kind, code), n in sorted(ended.items(), key=str)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--first", default="", help="a library to be preloaded before, a sanitizer's")
    parser.add_argument("--sample", type=int, default=0, help="about so many runs, by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if os.environ.get("PLIMSOLL_WHOLE_CAMPAIGN"):
        options.sample = 0
    options.binary = str(pathlib.Path(options.binary).resolve())
    options.preload = str(pathlib.Path(options.preload).resolve())
    failures = Failures()
    with tempfile.TemporaryDirectory(prefix="plimsoll-sides-") as folder:
        work = pathlib.Path(folder).resolve() / "run"
        work.mkdir()
        Sides(options, work)(failures)
    print(f"sides: {len(failures.lines)} failures")
    sys.exit(1 if failures.lines else 0)


if __name__ == "__main__":
    main()
