#!/usr/bin/env python3
"""Random trainings on one rank or several, each in random ways, stopped and resumed, against the plain run of the same training.

    run_combinations.py [--binary build/plimsoll] [--count 200] [--seed 1] [--only N] [--ranks 1,2,3] [--keep DIR]

What is trained: text of three families, labels of them, images of two; every precision and recipe, states, optimizers, groups,
what is frozen, averages, packing, odd batches and lengths, adapters beside a base in 16 or few bits. How: the mode of the ranks and
their network, what is computed again, offload, micro-batch, threads, device, loader; some runs are stopped at a random step by a
signal, or lose a rank, and go on in another way. Of each run: losses, norms, evaluations, final weights and the optimizer's state of
the last checkpoint are the plain run's, bit for bit; the process's peak is never above the plan; what `plan` says is what `train`
does, and the recorded run.yaml plans the same again. Runs that are refused (2) are listed by their reason: somebody has to read them.
Prints a line a failure and a summary; exits with 1 where anything failed.
"""
import argparse
import collections
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

import card_combinations
import combinations
from card_combinations import MODELS, tensors
from random_runs import What, how_of, run_file


class Refused(Exception):
    """The program said why it does not take these settings."""


class Place:
    """A folder in which runs are trained."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def start(self, what, how, command="train"):
        words = [command, "run.yaml", "--json", *what.settings, *how]
        if what.ranks > 1 and command == "train":
            words = ["launch", "--ranks", str(what.ranks), "--", *words]
        elif what.ranks > 1:
            words.append(f"distributed.ranks={what.ranks}")
        return subprocess.Popen([self.binary, *words], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=open(self.folder / "err.txt", "w"))

    def end(self, run, lines, allowed=(0,)):
        """The events; an error for any other code than those."""
        rest = run.stdout.read()
        run.wait(timeout=600)
        said = (self.folder / "err.txt").read_text(errors="replace").strip()
        if run.returncode == 2:
            raise Refused(said.split("error: ", 1)[-1][:600])
        if run.returncode not in allowed:
            raise RuntimeError(f"exit code {run.returncode}: {said[-700:]}")
        return [json.loads(line) for line in [*lines, *rest.splitlines()]]

    def train(self, what, how):
        self.clear()
        (self.folder / "run.yaml").write_text(run_file(what))
        return self.end(self.start(what, how), [])

    def clear(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)

    def train_in_parts(self, dice, what, ways):
        """Stopped behind a random step, by a signal or by the loss of a process, and gone on with in the next way."""
        self.clear()
        (self.folder / "run.yaml").write_text(run_file(what))
        all_events = []
        for how in ways[:-1]:
            run = self.start(what, how)
            last, lines = dice.randint(1, 3), []
            how_to_end = dice.choice([signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL])
            while True:
                line = run.stdout.readline()
                if not line:
                    break
                lines.append(line)
                event = json.loads(line)
                if event["event"] == "step" and event["step"] >= last:
                    run.send_signal(how_to_end)
                    break
            all_events += self.end(run, lines, (0, 75, -signal.SIGKILL))
            self.wait_for_ranks()
        return all_events + self.end(self.start(what, ways[-1]), [])

    def wait_for_ranks(self):
        """Ranks whose launcher was killed end by themselves."""
        for _ in range(1000):
            alive = False
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    alive |= (entry.name.isdigit() and os.readlink(entry / "cwd") == str(self.folder) and
                              os.readlink(entry / "exe") == self.binary)
                except OSError:
                    pass
            if not alive:
                return
            signal.sigtimedwait([], 0.02)
        raise RuntimeError("ranks are left behind")

    def left(self, events):
        """What must be the same, however it was done."""
        final = next((self.folder / "out/final").glob("*model.safetensors"))
        state = self.folder / "out/checkpoint-4/optimizer.safetensors"
        numbers = {}
        for e in events:
            if e["event"] == "step":
                numbers["step", e["step"]] = (e["loss"], e["grad_norm"], e.get("loss_scale"), e.get("tokens"), e["learning_rate"])
            if e["event"] == "eval":
                numbers["eval", e["step"]] = (e["loss"], e.get("tokens"), json.dumps(e.get("metrics")))
        return tensors(final), tensors(state) if state.exists() else {}, numbers


def differences(found, plain):
    differ = []
    for word, a, b in zip(("final weights", "state", "numbers"), found, plain):
        keys = [key for key in a.keys() | b.keys() if a.get(key) != b.get(key)]
        if keys:
            first = sorted(map(str, keys))[:3]
            values = "" if word != "numbers" else f" ({[(a.get(k), b.get(k)) for k in keys[:1]]})"
            differ.append(f"{word}: {len(keys)} differ: {', '.join(first)}{values}")
    return differ


def memory_troubles(events):
    found = []
    for summary in (e for e in events if e["event"] == "summary"):
        for planned, measured in [("planned_peak_bytes", "measured_peak_bytes"), ("host_planned_peak_bytes", "host_measured_peak_bytes")]:
            if planned in summary and summary[measured] > summary[planned]:
                found.append(f"{planned} {summary[planned]}, {measured} {summary[measured]}")
        if summary["allocations_after_first_step"] != 0:
            found.append(f"{summary['allocations_after_first_step']} allocations")
    return found


def plan_of(events):
    """What a plan says that depends on nothing but the run and the machine's kind."""
    plan = next(e for e in events if e["event"] == "plan")
    device = {key: plan["device"][key] for key in ("persistent_bytes", "arena_bytes", "peak_bytes")}
    choices = {key: plan["choices"].get(key) for key in ("micro_batch_size", "grad_accum_steps", "recompute", "recompute_set", "offload")}
    return device, plan["host"].get("peak_bytes"), plan["classes"], choices


def plan_troubles(place, what, how, events):
    trained = plan_of(events)
    again = place.end(place.start(what, how, "plan"), [])
    found = [] if plan_of(again) == trained else [f"plan says {plan_of(again)}, train {trained}"]
    recorded = subprocess.run([place.binary, "plan", "out/run.yaml", "--json"], cwd=place.folder, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)
    lines = [json.loads(line) for line in recorded.stdout.splitlines()]
    if recorded.returncode != 0 or plan_of(lines) != trained:
        found.append(f"recorded: exit {recorded.returncode} {recorded.stderr[-300:]} {plan_of(lines) if lines else ''} for {trained}")
    return found


def check(place, dice, optimizers, counts):
    """The training, its ways, and what is wrong with them."""
    what = What(dice, optimizers, counts)
    plain = place.left(place.train(what, ["memory.recompute=none", "runtime.threads=1"]))
    ways = [how_of(dice, what) for _ in range(3)]
    found = []
    try:
        for how in ways[:2]:
            events = place.train(what, how)
            troubles = differences(place.left(events), plain) + memory_troubles(events)
            if dice.random() < 0.5:
                troubles += plan_troubles(place, what, how, events)
            found += [f"{' '.join(map(shlex.quote, how))}: {trouble}" for trouble in troubles]
        events = place.train_in_parts(dice, what, ways)
        troubles = differences(place.left(events), plain) + memory_troubles(events)
        found += [f"in parts {ways}: {trouble}" for trouble in troubles]
    except Refused as refused:
        return what, found, f"{ways}: {refused}"
    except (RuntimeError, OSError, StopIteration, subprocess.TimeoutExpired) as error:
        found.append(f"{ways}: {error!r}")
    return what, found, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="1,2,3", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--only", type=int, help="the training of this number alone")
    parser.add_argument("--keep", help="work in this folder and leave it")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    failed, refused = 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="plimsoll-runs-") as temporary:
        folder = pathlib.Path(arguments.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        combinations.write_data(folder, random.Random(0))
        card_combinations.write_images(folder, random.Random(0))
        optimizers = combinations.optimizers(binary, folder)
        for name in MODELS:
            combinations.base_model(binary, folder, name)
        chosen = range(arguments.count) if arguments.only is None else [arguments.only]
        for number in chosen:
            dice = random.Random(f"{arguments.seed} {number}")
            try:
                what, found, reason = check(Place(binary, folder), dice, optimizers, arguments.ranks)
            except Refused as error:
                what, found, reason = None, [], f"plain: {error}"
            except (RuntimeError, OSError, StopIteration, subprocess.TimeoutExpired) as error:
                what, found, reason = None, [f"the plain run: {error!r}"], None
            if reason:
                refused[reason.split("]]: ")[-1].split("\n")[0]] += 1
                print(f"{number}: refused: {reason}", flush=True)
            if found:
                failed += 1
                print(f"{number}: {what.text() if what else ''}\n    " + "\n    ".join(found), flush=True)
    for reason, times in refused.most_common():
        print(f"refused {times} times: {reason}")
    print(f"{len(chosen)} trainings on {arguments.ranks} ranks ({', '.join(optimizers)}), {failed} failed, {sum(refused.values())} refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
