#!/usr/bin/env python3
"""Ranks of one machine: their bits, what they learn, how they resume, how they end when one is lost.

    ranks.py [--binary build/plimsoll] [--only bits,learn,resume,lost] [--ranks 2,3,4,8] [--lost 100] [--seed 1]

bits     ddp, zero1, zero2 and zero3 over shared memory, Open MPI and MPICH: final weights, the optimizer's state, losses and
         norms are those of ddp over shared memory, bit for bit. A launcher that is not installed is left out, and named.
learn    200 steps in fp32 on one rank and on several, of a batch that they divide and of one that they do not: losses
         within 1e-5.
resume   from each number of ranks to each, one among them: at once the weights of the checkpoint; after three steps more the
         same bits in ddp and zero3, and losses within 1e-5 of those that one rank goes on with.
lost     a random rank is killed or stopped at a random moment: the run ends with 74 and names it, no process and nothing in
         /dev/shm is left two seconds after (a stopped one: two after its deadline; beneath mpirun four), and the newest
         checkpoint is whole.

Prints a line a failure and a summary; exits with 1 where anything failed.
"""
import argparse
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUN = """
model:
  config: {model_type: llama, vocab_size: 1000, hidden_size: 60, intermediate_size: 300, num_hidden_layers: 2,
    num_attention_heads: 3, num_key_value_heads: 1, head_dim: 20, max_position_embeddings: 400, rms_norm_eps: 1.0e-5,
    tie_word_embeddings: true, attention_bias: true}
  init: random
data: {train: train.txt, tokenizer: bytes, sequence_length: 100}
training: {global_batch_size: 7, max_steps: 3, learning_rate: 3.0e-3, seed: 5, logging_steps: 1, eval_strategy: no}
output: {dir: out, save_steps: 3}
runtime: {threads: 1}
"""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
LAUNCHERS = {"mpi of Open MPI": "mpirun.openmpi --oversubscribe --bind-to none -n", "mpi of MPICH": "mpiexec.mpich -n"}
MODES = ["ddp", "zero1", "zero2", "zero3"]
DEADLINE = 2  # seconds without a sign of life
LAUNCHER_SECONDS = 4  # mpirun ends the ranks that are left in its own time


def some_text(size):
    dice = random.Random(0)
    words = ["budget", "gradient", "layer", "memory", "plan", "rank", "step", "weight"]
    return " ".join(dice.choices(words, k=size // 6))


class Place:
    """A folder with a run, and what has failed."""

    def __init__(self, arguments, folder):
        self.binary, self.folder, self.failed, self.runs = str(pathlib.Path(arguments.binary).resolve()), folder, 0, 0
        (folder / "run.yaml").write_text(RUN)
        (folder / "train.txt").write_text(some_text(200_000))

    def command(self, ranks, settings, launcher=None):
        train = f"train run.yaml --json {settings}"
        if launcher:
            return [*launcher.split(), str(ranks), self.binary, *shlex.split(train), "distributed.transport=mpi"]
        return [self.binary, *([] if ranks == 1 else ["launch", "--ranks", str(ranks), "--"]), *shlex.split(train)]

    def train(self, ranks, settings, launcher=None):
        """The events of a run that must end well."""
        self.runs += 1
        done = subprocess.run(self.command(ranks, settings, launcher), cwd=self.folder, env={**os.environ, **AS_ROOT},
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.expect(done.returncode == 0, f"{ranks} ranks, {settings}: exit {done.returncode}: {done.stderr[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def expect(self, holds, what):
        if not holds:
            self.failed += 1
            print("FAILED", what, flush=True)

    def remove(self, *names):
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def read(self, name):
        path = self.folder / name
        return path.read_bytes() if path.exists() else b""


def losses(events):
    return [event["loss"] for event in events if event.get("event") == "step"]


def apart(some, others):
    """The largest relative difference; endless where one has more steps."""
    if len(some) != len(others) or not some:
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in zip(some, others))


def bits(place, arguments):
    launchers = {name: command for name, command in LAUNCHERS.items() if shutil.which(command.split()[0])}
    for name in LAUNCHERS.keys() - launchers.keys():
        print(f"bits: no {name} here")
    for ranks in arguments.ranks:
        expected = None
        for transport, launcher in [("shm", None), *launchers.items()]:
            for mode in MODES:
                place.remove("out")
                events = place.train(ranks, f"training.max_grad_norm=0.1 distributed.mode={mode}", launcher)
                steps = [(e["loss"], e["grad_norm"]) for e in events if e.get("event") == "step"]
                left = (place.read("out/final/model.safetensors"), tensors(place.read("out/checkpoint-3/optimizer.safetensors")), steps)
                expected = expected or left
                place.expect(left == expected and len(left[0]) > 0, f"{ranks} ranks, {transport}, {mode}: other bits than ddp")
    return f"{len(arguments.ranks) * len(MODES) * (1 + len(launchers))} runs with the bits of ddp"


def tensors(file):
    """By name: the file's order is that of the plan."""
    if not file:
        return {}
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8:8 + size])
    return {name: file[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]
            for name, t in header.items() if name != "__metadata__"}


def learn(place, arguments):
    worst = 0
    for batch in (8, 7):
        settings = f"training.max_steps=200 training.global_batch_size={batch} output.save_steps=0 training.learning_rate=1e-3"
        place.remove("out")
        alone = losses(place.train(1, settings))
        for ranks in arguments.ranks:
            place.remove("out")
            together = losses(place.train(ranks, settings))
            worst = max(worst, apart(together, alone))
            place.expect(apart(together, alone) <= 1e-5, f"{ranks} ranks, batch of {batch}: losses {apart(together, alone):.2e} apart")
    return f"200 steps, losses at most {worst:.1e} apart"


def resume(place, arguments):
    counts, worst = [1, *arguments.ranks], 0
    for before in counts:
        place.remove("before")
        place.train(before, f"output.dir=before distributed.mode={'zero3' if before > 1 else 'ddp'}")
        saved = place.read("before/final/model.safetensors")
        go_on = "--resume before/checkpoint-3 output.dir=out"
        alone = None
        for after in counts:
            left = []
            place.remove("out")
            place.train(after, f"{go_on} distributed.mode={'zero1' if after > 1 else 'ddp'}")
            place.expect(place.read("out/final/model.safetensors") == saved, f"{before} -> {after} ranks: other weights at once")
            for mode in ["ddp"] if after == 1 else ["ddp", "zero3"]:
                place.remove("out")
                events = place.train(after, f"{go_on} training.max_steps=6 output.save_steps=6 distributed.mode={mode}")
                left.append((place.read("out/final/model.safetensors"), tensors(place.read("out/checkpoint-6/optimizer.safetensors"))))
                alone = alone or losses(events)
                worst = max(worst, apart(losses(events), alone))
                place.expect(len(losses(events)) == 3 and apart(losses(events), alone) <= 1e-5,
                             f"{before} -> {after} ranks, {mode}: losses {apart(losses(events), alone):.2e} apart")
            place.expect(all(one == left[0] for one in left), f"{before} -> {after} ranks: zero3 goes on otherwise than ddp")
    return f"{len(counts)}x{len(counts)} numbers of ranks, losses at most {worst:.1e} apart"


def processes_of(folder):
    """Of a run in that folder: by rank, and all."""
    ranks, everyone = {}, set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or os.readlink(entry / "cwd") != str(folder):
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
            if b"State:\tZ" in (entry / "status").read_bytes():
                continue
        except OSError:
            continue
        everyone.add(int(entry.name))
        for word in environment:
            if word.startswith((b"PLIMSOLL_RANK=", b"OMPI_COMM_WORLD_RANK=")):
                ranks[int(word.split(b"=")[1])] = int(entry.name)
    return ranks, everyone


def lose_one(place, dice):
    """Seconds from the loss to the end of all."""
    ranks, mode, how = dice.choice([2, 3, 4]), dice.choice(MODES), dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
    launcher = dice.choice([None, None, None, LAUNCHERS["mpi of Open MPI"]])
    if launcher and not shutil.which(launcher.split()[0]):
        launcher = None
    # With a network the ranks exchange while they compute.
    network = dice.choice(["", " 'distributed.topology={per_node: 1, inter: 1GB/s}'"])
    what = f"{ranks} ranks, {mode}, {'mpi' if launcher else 'shm'}, {how.name}{network}"
    place.remove("out")
    settings = f"training.max_steps=1000000 output.save_steps=5 output.save_total_limit=2 output.monitor_seconds=0 distributed.mode={mode}{network}"
    out = open(place.folder / "out.txt", "wb")
    err = open(place.folder / "err.txt", "wb")
    shared = set(os.listdir("/dev/shm"))
    place.runs += 1
    run = subprocess.Popen(place.command(ranks, settings, launcher), cwd=place.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                           env={**os.environ, **AS_ROOT, "PLIMSOLL_RANKS_DEADLINE": str(DEADLINE)})
    end = time.monotonic() + 120
    while b'"event": "step"' not in place.read("out.txt") and run.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(dice.uniform(0, 1.5))
    pids, _ = processes_of(place.folder)
    lost = dice.randrange(ranks)
    if run.poll() is not None or lost not in pids:
        place.expect(False, f"{what}: no rank {lost} to lose: {place.read('err.txt')[-300:]}")
        return 0
    os.kill(pids[lost], how)
    start, everyone = time.monotonic(), {0}
    while everyone and time.monotonic() < start + 60:
        run.poll()
        _, everyone = processes_of(place.folder)
        time.sleep(0.02)
    seconds = time.monotonic() - start - (DEADLINE if how == signal.SIGSTOP else 0)
    for pid in everyone:
        os.kill(pid, signal.SIGKILL)
    code, said = run.wait(), place.read("err.txt").decode(errors="replace")
    place.expect(not everyone, f"{what}: {len(everyone)} processes are left behind")
    place.expect(code == 74 or (launcher and code != 0), f"{what}: exit {code}")
    # mpirun ends the others itself, at times before one of them has told.
    place.expect(launcher is not None or f"rank {lost} (host " in said, f"{what}: rank {lost} is not named: {said[-300:]}")
    place.expect(seconds < (LAUNCHER_SECONDS if launcher else 2), f"{what}: all have ended after {seconds:.1f} s")
    left = set(os.listdir("/dev/shm")) - shared
    place.expect(not left, f"{what}: left in /dev/shm: {left}")
    return seconds


def check_newest(place):
    """What a lost run has saved last is gone on from."""
    found = sorted((place.folder / "out").glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    if not found:
        return
    place.remove("next")
    place.runs += 1
    command = place.command(1, f"--resume {found[-1]} output.dir=next training.max_steps=1000000 output.save_steps=5 "
                               "output.save_total_limit=2 output.monitor_seconds=0")
    run = subprocess.Popen(command, cwd=place.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    step = next((line for line in run.stdout if '"event": "step"' in line), "")
    run.terminate()
    _, said = run.communicate()
    place.expect(run.returncode == 75 and f'"step": {int(found[-1].name.split("-")[1]) + 1},' in step,
                 f"{found[-1].name} is not gone on from: exit {run.returncode}: {said[-300:]}")


def lost(place, arguments):
    dice = random.Random(arguments.seed)
    seconds = []
    for _ in range(arguments.lost):
        seconds.append(lose_one(place, dice))
        check_newest(place)
    return f"{arguments.lost} ranks lost, all ended within {max(seconds, default=0):.2f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="bits,learn,resume,lost")
    parser.add_argument("--ranks", default="2,3,4,8", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--lost", default=100, type=int)
    parser.add_argument("--seed", default=1, type=int)
    arguments = parser.parse_args()
    parts = {"bits": bits, "learn": learn, "resume": resume, "lost": lost}
    failed = 0
    for name in arguments.only.split(","):
        with tempfile.TemporaryDirectory(prefix="plimsoll-ranks-") as folder:
            place = Place(arguments, pathlib.Path(folder))
            start = time.monotonic()
            said = parts[name](place, arguments)
            failed += place.failed
            print(f"{name}: {place.runs} runs, {place.failed} failed, {time.monotonic() - start:.0f} s: {said}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
