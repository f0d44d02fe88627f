#!/usr/bin/env python3
"""Budgets from the least to five times the least: whether runs stay within them, and what they cost.

    budgets.py [--binary build/plimsoll] [--budgets 12] [--steps 4] [--by-hand 150] [--rounds 3] [--only llama,classifier]
               [--link 200MB/s] [--plans] [--rates built-in,FILE] [--isa avx2,avx512]

For each of four models (one a classifier) the program names the least budget; between it and five times as much there
are `budgets`, at which the run is planned and run: nothing is refused, VmHWM is within the budget, the estimated time
falls with memory, losses stay, and no setting made by hand needs less than the least.

With --link the device is `discrete` behind a link of that speed, the budget is its memory's, and settings by hand
offload too. With --by-hand that many settings made by hand are run for real; at each budget the four quickest of those that fit run
again, in turns, `rounds` times, and the best of these twice as often beside what the program chooses: only that counts,
as the best of several is the luckiest too. Of all steps of a setting's runs the median counts. Prints for each budget
the chosen time over that of the best by hand. Exits with 1 where a run leaves its budget, is refused, or the bits differ.

With --plans nothing is run: under each of --rates (runtime.profile: built-in, or a file that calibrate wrote, which is
taken as it is and as rates measured at first use) and, for the built-in ones, of each instruction set, the estimate never
grows with the budget (plans that write a disk, which only what does not fit otherwise does, are not compared with), and no setting made by hand that fits is more than 2 % quicker by the estimate.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

from combinations import LABELS, write_data

LLAMA = ("{model_type: llama, vocab_size: 2000, hidden_size: 192, intermediate_size: 512, num_hidden_layers: 8, "
         "num_attention_heads: 6, num_key_value_heads: 2, max_position_embeddings: 512, rms_norm_eps: 1.0e-5}")
QWEN3 = ("{model_type: qwen3, vocab_size: 8000, hidden_size: 128, intermediate_size: 384, num_hidden_layers: 6, head_dim: 32, "
         "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 512, rms_norm_eps: 1.0e-6, "
         "tie_word_embeddings: true}")
GPT2 = ("{model_type: gpt2, vocab_size: 4000, n_embd: 192, n_layer: 8, n_head: 6, n_positions: 512, resid_pdrop: 0.1, "
        "embd_pdrop: 0.1, attn_pdrop: 0.1}")
MODELS = {"llama": (LLAMA, "causal_lm", 8, "layers", "self_attn"), "qwen3": (QWEN3, "causal_lm", 6, "layers", "self_attn"),
          "gpt2": (GPT2, "causal_lm", 8, "h", "attn"), "classifier": (LLAMA, "sequence_classification", 8, "layers", "self_attn")}
BATCH, LENGTH = 8, 256
FINALISTS = 4
# What people offload, beside nothing; {n}: of half of the blocks.
OFFLOADS = ["none", "{{optimizer: host}}", "{{activations: host}}", "{{optimizer: host, activations: host}}", "{{activations: {{host: {n}}}}}",
            "{{optimizer: host, activations: {{host: {n}}}}}", "{{optimizer: host, gradients: host, activations: host}}",
            "{{optimizer: host, parameters: host, gradients: host, activations: host}}"]


class Work:
    def __init__(self, binary, folder, name, steps, link, rates="auto", isa=None):
        self.binary, self.folder, self.name, self.link, self.rates = binary, folder, name, link, rates
        self.environment = {**os.environ, "PLIMSOLL_ISA": isa} if isa else None
        self.budget = "memory.device_budget" if link else "memory.budget"
        config, task, self.blocks, self.prefix, self.attention = MODELS[name]
        file = "labels.jsonl" if task == "sequence_classification" else "text.jsonl"
        (folder / f"{name}.yaml").write_text(
            f"task: {task}\nmodel: {{config: {config}, init: random}}\n"
            f"data: {{train: {file}, sequence_length: {LENGTH}, tokenizer: tokenizer.json}}\n" +
            (LABELS if task == "sequence_classification" else "") +
            f"training: {{global_batch_size: {BATCH}, max_steps: {steps}, learning_rate: 1.0e-3, logging_steps: 1}}\n"
            "output: {dir: out, save_strategy: \"no\"}\n" +
            (f"runtime: {{device: discrete, profile: {rates}, discrete: {{memory: 4GiB, copy_bandwidth: {link}}}}}\n" if link else
             f"runtime: {{profile: {rates}}}\n"))

    def call(self, command, settings):
        subprocess.run(["rm", "-rf", str(self.folder / "out/checkpoints"), str(self.folder / "out/final")], check=True)
        return subprocess.run([self.binary, command, f"{self.name}.yaml", "--json", *settings], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=600, env=self.environment)

    def plan(self, settings):
        done = self.call("plan", settings)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return next((e for e in events if e["event"] == "plan"), None), done

    def train(self, settings):
        """Losses, seconds of each step but the first, the summary; or what went wrong."""
        done = self.call("train", settings)
        if done.returncode != 0:
            return None, None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        events = [json.loads(line) for line in done.stdout.splitlines()]
        steps = [e for e in events if e["event"] == "step"]
        summary = next(e for e in events if e["event"] == "summary")
        return [(e["loss"], e["grad_norm"]) for e in steps], [e["step_seconds"] for e in steps[1:]], summary

    def least(self):
        _, done = self.plan([f"{self.budget}=1MiB", "training.micro_batch_size=auto"])
        return int(re.search(r"\((\d+) bytes\)", done.stderr).group(1))

    def by_hand(self, count, dice):
        """Settings that a person might try, and then some."""
        layers = [f"{self.prefix}.{i}" for i in range(self.blocks)]
        policies = ["none", "full", "attention", "mlp", "selective", "segments"]
        policies += ["{every: %d}" % n for n in range(2, self.blocks)] + ["{segments: %d}" % n for n in range(1, self.blocks)]
        policies += ["{layers: [%s]}" % ", ".join(layers[:n]) for n in range(1, self.blocks)]
        policies += ["{layers: [%s]}" % ", ".join(f"{name}.mlp" for name in layers[:n]) for n in range(1, self.blocks)]
        policies += ["{layers: [%s]}" % ", ".join(f"{name}.{self.attention}" for name in layers[:n])
                     for n in range(1, self.blocks)]
        offloads = [text.format(n=self.blocks // 2) for text in OFFLOADS] if self.link else ["none"]
        everything = list(itertools.product(policies, [8, 4, 2, 1], ["auto", "false"], offloads))
        dice.shuffle(everything)
        # First what everybody tries.
        everything.sort(key=lambda s: s[0] not in (policies[:2] if self.link else policies[:6]))
        return [[f"memory.recompute={p}", f"training.micro_batch_size={m}", f"memory.optimizer_in_backward={o}", f"memory.offload={e}"]
                for p, m, o, e in everything][:count]

    def peak(self, plan):
        return plan["device"]["peak_bytes"] if self.link else plan["process_peak_bytes"]


def budgets_of(work, count):
    least = work.least()
    return [round(least * 5 ** (i / (count + 1))) for i in range(count + 2)]


def check_budgets(work, budgets):
    """Whether runs stay within them; a line of each."""
    plain, _, _ = work.train([f"{work.budget}=4GiB"])
    failed, last = 0, 1e30
    for budget in budgets:
        settings = [f"{work.budget}={budget}"]
        plan, _ = work.plan(settings)
        losses, seconds, summary = work.train(settings)
        if losses is None:
            print(f"{work.name} {budget}: {summary}", flush=True)
            failed += 1
            continue
        estimated, choices = plan["step"]["seconds_estimated"], plan["choices"]
        troubles = [text for wrong, text in [
            (summary["measured_peak_bytes"] > budget, f"peak {summary['measured_peak_bytes']}"),
            (losses != plain, "other losses"), (estimated > last * 1.0000001, f"slower than with less, by the estimate {last}"),
            (summary["allocations_after_first_step"] != 0, "allocations")] if wrong]
        last = min(last, estimated)
        failed += len(troubles)
        print(f"{work.name:10} budget {budget / 2**20:7.1f} MiB, measured peak {summary['measured_peak_bytes'] / 2**20:7.1f}, "
              f"{choices['micro_batch_size']} x {choices['grad_accum_steps']}, chunk {choices['loss_chunk_tokens']}, "
              f"recompute {choices['recompute']}: {statistics.median(seconds) * 1e3:.1f} ms a step, estimated {estimated * 1e3:.1f} "
              f"{' '.join(troubles)}", flush=True)
    return failed


def compare_plans(work, budgets, count, dice):
    """The estimates of what is chosen, against less memory's and against what is made by hand; returns what failed."""
    hand = []
    for settings in work.by_hand(count, dice):
        plan, _ = work.plan([*settings, f"{work.budget}=4GiB"])
        if plan is not None:
            hand.append((work.peak(plan), plan["step"]["seconds_estimated"], settings))
    failed, last = 0, None
    for budget in budgets:
        plan, done = work.plan([f"{work.budget}={budget}"])
        if plan is None or not plan["fits"]:
            print(f"{work.name} {budget}: {done.stderr.strip()[-200:]}")
            failed += 1
            continue
        seconds, choices = plan["step"]["seconds_estimated"], plan["choices"]
        quickest = min((h for h in hand if h[0] <= budget), key=lambda h: h[1], default=None)
        troubles = []
        if last is not None and seconds > last * 1.0000001:
            troubles.append(f"{100 * (seconds / last - 1):.2f} % SLOWER THAN WITH LESS")
        if quickest is not None and seconds > 1.02 * quickest[1]:
            troubles.append(f"{100 * (seconds / quickest[1] - 1):.2f} % BEHIND {' '.join(quickest[2])}")
        failed += len(troubles)
        if "disk" not in str(choices["offload"]):
            last = seconds if last is None else min(last, seconds)
        ratio = f"{seconds / quickest[1]:.3f} of the best by hand" if quickest else "none by hand fits"
        print(f"{work.name:10} {budget / 2**20:7.1f} MiB, {choices['micro_batch_size']} x {choices['grad_accum_steps']}, recompute "
              f"{choices['recompute']}, offload {choices['offload']}: {seconds * 1e3:.2f} ms, {ratio} {' '.join(troubles)}", flush=True)
    return failed


def kinds_of_rates(arguments, folder):
    """Rates by name: what runtime.profile says, and the instruction set that is asked for."""
    kinds = []
    for rates in arguments.rates.split(","):
        if not pathlib.Path(rates).is_file():
            kinds += [(f"{rates} {isa}", rates, isa) for isa in arguments.isa.split(",")]
            continue
        profile = json.loads(pathlib.Path(rates).read_text())
        for kind in ["calibrated", "measured"]:
            path = folder / f"{kind}-{len(kinds)}.json"
            path.write_text(json.dumps({**profile, "rates": kind}))
            kinds.append((f"{rates} as {kind}", str(path), None))
    return kinds


def check_plans(binary, folder, arguments, dice):
    failed = 0
    for title, rates, isa in kinds_of_rates(arguments, folder):
        for name in arguments.only.split(","):
            print(f"-- {title}{', link ' + arguments.link if arguments.link else ''}")
            work = Work(binary, folder, name, arguments.steps, arguments.link, rates, isa)
            failed += compare_plans(work, budgets_of(work, arguments.budgets), arguments.by_hand or 60, dice)
    return failed


def compare(work, budgets, count, rounds, dice):
    """Chosen against made by hand; returns the ratios and what failed."""
    hand = []
    for settings in work.by_hand(count, dice):
        settings = [*settings, f"{work.budget}=4GiB"]
        plan, done = work.plan(settings)
        if plan is None:
            print(f"{work.name} {settings}: {done.stderr.strip()[-200:]}")
            continue
        hand.append({"settings": settings, "peak": work.peak(plan), "times": []})
    least = min(h["peak"] for h in hand)
    failed = 0
    if least < budgets[0]:
        print(f"{work.name}: a setting by hand needs {least}, less than the least {budgets[0]}")
        failed += 1

    def run(entries):
        for entry in dice.sample(entries, len(entries)):
            _, seconds, problem = work.train(entry["settings"])
            if seconds is None:
                print(f"{work.name} {entry['settings']}: {problem}")
                return 1
            entry["times"] += seconds
        return 0

    def median(entry):
        return statistics.median(entry["times"])

    failed += run(hand)
    ratios = []
    for budget in budgets:
        fitting = sorted((h for h in hand if h["peak"] <= budget and h["times"]), key=median)
        finalists = [{**h, "times": []} for h in fitting[:FINALISTS]]
        for _ in range(rounds):
            failed += run(finalists)
        best = {**min(finalists, key=median), "times": []} if finalists else None
        chosen = {"settings": [f"{work.budget}={budget}"], "times": []}
        for _ in range(2 * rounds):
            failed += run([chosen, best] if best else [chosen])
        if failed:
            continue
        if best is None:
            print(f"{work.name} {budget / 2**20:.1f} MiB: no setting by hand fits, {median(chosen) * 1e3:.1f} ms", flush=True)
            continue
        ratios.append(median(chosen) / median(best))
        print(f"{work.name} {budget / 2**20:.1f} MiB: chosen {median(chosen) * 1e3:.1f} ms, best of {len(fitting)} by hand "
              f"{median(best) * 1e3:.1f} ({' '.join(best['settings'][:4])}), ratio {ratios[-1]:.3f}", flush=True)
    return ratios, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--budgets", type=int, default=12, help="between the least and five times as much")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--by-hand", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--link", help="bytes a second of the link to a device with memory of its own, as 200MB/s")
    parser.add_argument("--plans", action="store_true", help="estimates alone: nothing is run")
    parser.add_argument("--rates", default="built-in", help="with --plans: built-in, or a file of calibrate's; several with commas")
    parser.add_argument("--isa", default="portable,avx2,avx512,avx512_bf16,amx", help="with --plans: whose built-in rates")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    dice = random.Random(11)
    failed, ratios = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_data(folder, dice)
        if arguments.plans:
            failed = check_plans(binary, folder, arguments, dice)
            print(f"{failed} failed")
            return 1 if failed else 0
        for name in arguments.only.split(","):
            work = Work(binary, folder, name, arguments.steps, arguments.link)
            budgets = budgets_of(work, arguments.budgets)
            if arguments.by_hand == 0:
                failed += check_budgets(work, budgets)
                continue
            found, wrong = compare(work, budgets, arguments.by_hand, arguments.rounds, dice)
            ratios, failed = ratios + found, failed + wrong
    if ratios:
        within = sum(r <= 1.03 for r in ratios)
        print(f"chosen within 3 % of the best by hand at {within} of {len(ratios)} budgets; worst {max(ratios):.3f}")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
