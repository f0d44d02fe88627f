#!/usr/bin/env python3
"""Random ways to run random trainings, each against the plain run of the same training.

    combinations.py [--binary build/plimsoll] [--count 200] [--seed 1] [--keep DIR]

What is trained: model (three decoders and two encoders, as language models and classifiers), precision, optimizer, packing or buckets, all of it
or adapters (--lora: nothing else; beside a base that was saved before, whole or in few bits). How: what is computed again, under the least budget too, what is offloaded where, where the optimizer updates, micro-batch,
threads, device. Of each run: losses, norms and final weights are the plain run's, bit
for bit; the process's peak is never above the planned one, and no more than 3 % or 32 MiB below it; nothing is allocated
behind the first step. Prints a line a failure and a summary; exits with 1 where anything failed.
"""
import argparse
import hashlib
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

LLAMA = ("{model_type: llama, vocab_size: 300, hidden_size: 64, intermediate_size: 150, num_hidden_layers: 4, "
         "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, rms_norm_eps: 1.0e-5}")
QWEN3 = ("{model_type: qwen3, vocab_size: 300, hidden_size: 48, intermediate_size: 112, num_hidden_layers: 3, head_dim: 16, "
         "num_attention_heads: 4, num_key_value_heads: 1, max_position_embeddings: 256, rms_norm_eps: 1.0e-6, "
         "tie_word_embeddings: true}")
GPT2 = ("{model_type: gpt2, vocab_size: 300, n_embd: 48, n_layer: 4, n_head: 3, n_positions: 256, resid_pdrop: 0.1, "
        "embd_pdrop: 0.1, attn_pdrop: 0.1}")
BERT = ("{model_type: bert, vocab_size: 300, hidden_size: 48, intermediate_size: 90, num_hidden_layers: 3, num_attention_heads: 3, "
        "max_position_embeddings: 256}")
MODERNBERT = ("{model_type: modernbert, vocab_size: 300, hidden_size: 64, intermediate_size: 90, num_hidden_layers: 4, "
              "num_attention_heads: 4, max_position_embeddings: 256, pad_token_id: 0, local_attention: 20, global_attn_every_n_layers: 3, "
              "classifier_pooling: mean, embedding_dropout: 0.1, attention_dropout: 0.1, mlp_dropout: 0.1}")
ENCODERS = {"bert": (BERT, 3, "layer"), "modernbert": (MODERNBERT, 4, "layers")}
MODELS = {"llama": (LLAMA, 4, "layers"), "qwen3": (QWEN3, 3, "layers"), "gpt2": (GPT2, 4, "h")} | ENCODERS
ATTENTION = {"llama": "self_attn", "qwen3": "self_attn", "gpt2": "attn", "bert": "attention", "modernbert": "attention"}
PARTS = {"llama": ["q_proj", "v_proj", "down_proj"], "qwen3": ["q_proj", "v_proj", "down_proj"], "gpt2": ["c_attn"],
         "bert": ["query", "value"], "modernbert": ["Wqkv", "Wo"]}
LABELS = "classification: {num_labels: 3, problem_type: single_label}\n"
PACKING = ["stream", "best_fit", "pad"]
PRECISION = ["fp32", "tf32", "bf16", "fp16", "bf16 training.state.weights=bf16 training.state.gradients=bf16"]


def optimizers(binary, folder):
    """What this build offers."""
    (folder / "run.yaml").write_text("model: {preset: gpt2}\n")
    refused = subprocess.run([binary, "plan", "run.yaml", "training.optimizer=none-such"], cwd=folder,
                             capture_output=True, text=True).stderr
    words = refused.split("expected one of", 1)[-1].split(":")[0].split(";")[0]
    return [word.strip() for word in words.replace(" or ", ", ").split(",") if word.strip()]


FEW_BITS = ["{load_in_4bit: true}", "{load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}",
            "{load_in_4bit: true, bnb_4bit_quant_type: fp4}", "{load_in_8bit: true}"]


def language_task(name):
    """What a model of that family is pretrained for."""
    return "masked_lm" if name in ENCODERS else "causal_lm"


def base_model(binary, folder, name):
    """A model directory of that family, made where it is not there: what adapters stand beside."""
    base = folder / f"base-{name}"
    if not base.exists():
        train(binary, folder, (name, language_task(name), "training.max_steps=1 output.save_strategy=no"), [])
        (folder / "out/final").rename(base)
    return base


def lora_of(dice, name, task):
    """The adapters' settings, as a run file has them."""
    targets = ["all-linear", f"[{', '.join(PARTS[name])}]"]
    if name == "llama":
        targets.append("[q_proj, embed_tokens]")
    target = dice.choice(targets)
    parts = [f"r: {dice.randint(1, 6)}", f"target_modules: {target}"]
    if dice.random() < 0.3 and "embed" not in target:
        parts.append(dice.choice(["use_dora: true", "lora_bias: true", "init_lora_weights: pissa", "init_lora_weights: olora"]))
    if dice.random() < 0.3 and "embed" not in target:
        parts.append("lora_dropout: 0.1")
    if dice.random() < 0.2:
        parts.append("bias: all")
    if "init_lora_weights" not in " ".join(parts) and "lora_bias" not in " ".join(parts):
        parts.append("init_lora_weights: " + dice.choice(["false", "gaussian"]))
    if name == "bert" and task == "sequence_classification":
        parts.append("modules_to_save: [bert.pooler.dense]")  # which a masked language model's file lacks
    settings = ["lora={" + ", ".join(parts) + "}"]
    if dice.random() < 0.5 and "embed" not in target:
        settings.append("quantization=" + dice.choice(FEW_BITS))
    return settings


def what_of(dice, binary_optimizers, lora):
    name = dice.choice(list(MODELS))
    task = "sequence_classification" if dice.random() < 0.2 else language_task(name)
    settings = [f"training.precision={dice.choice(PRECISION)}", f"training.optimizer={dice.choice(binary_optimizers)}"]
    if dice.random() < 0.5:
        settings.append("training.max_grad_norm=0")
    if lora:
        settings += [f"model.path=base-{name}", "model.init=pretrained", "model.config=null", *map(shlex.quote, lora_of(dice, name, task))]
    if task != "sequence_classification":
        settings.append(f"data.packing={dice.choice(PACKING)}")
        if lora and settings[-1].endswith("pad") and dice.random() < 0.5:
            settings.append("data.buckets=2")
    return name, task, " ".join(settings)


def how_of(dice, name, what_settings, on_host):
    _, blocks, prefix = MODELS[name]
    part = ATTENTION[name]
    policies = ["auto", "none", "full", "attention", "mlp", "selective", "segments",
                "{every: %d}" % dice.randint(1, blocks), "{segments: %d}" % dice.randint(1, blocks),
                "{layers: [%s.%d, \"*.mlp\"]}" % (prefix, dice.randrange(blocks)),
                "{layers: [%s.0..%s.%d, %s.%d.%s]}" % (prefix, prefix, blocks - 2, prefix, blocks - 1, part)]
    settings = ["memory.recompute=" + dice.choice(policies), f"training.micro_batch_size={dice.choice([1, 2, 4, 8])}",
                f"runtime.threads={dice.randint(1, 3)}"]
    if "training.micro_batch_size=8" in settings and "fp16" not in what_settings and dice.random() < 0.7:
        settings.append("memory.optimizer_in_backward=true")
        if "max_grad_norm" not in what_settings:
            settings.append("memory.second_backward=true")
    if on_host or dice.random() < 0.4:
        settings.append("runtime.device=discrete")
        if dice.random() < 0.5:
            settings.append(f"runtime.discrete.seed={dice.randrange(1000)}")
    if on_host or dice.random() < 0.5:
        classes = dice.sample(["activations", "optimizer", "masters", "gradients", "parameters"], dice.randint(1, 5))
        places = {c: dice.choice(["host", "disk"]) for c in classes}
        if on_host:
            places = {c: "host" if c == "optimizer" or dice.random() < 0.8 else place
                      for c, place in (places | {"optimizer": "host"}).items()}
            settings.append("memory.update_on_host=true")
        settings.append("memory.offload={%s}" % ", ".join(f"{c}: {place}" for c, place in places.items()))
    if dice.random() < 0.2:
        settings.append("debug.poison=true")
    return settings


def write_data(folder, dice):
    """Texts of ten letters, and a tokenizer of bytes for them."""
    vocab = {chr(c): c - 32 for c in range(33, 127)} | {"\u0120": 0}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "vocab": vocab, "merges": []}}))
    words = ["".join(dice.choice("abcdefghij") for _ in range(dice.randint(2, 8))) for _ in range(60)]
    lines = [" ".join(dice.choice(words) for _ in range(dice.randint(5, 60))) for _ in range(160)]
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    (folder / "labels.jsonl").write_text(
        "".join(json.dumps({"text": line, "label": i % 3}) + "\n" for i, line in enumerate(lines)))


def run_file(config, task):
    file = "labels.jsonl" if task == "sequence_classification" else "text.jsonl"
    return (f"task: {task}\nmodel: {{config: {config}, init: random}}\n"
            f"data: {{train: {file}, sequence_length: 128, tokenizer: tokenizer.json}}\n" +
            (LABELS if task == "sequence_classification" else "") + ("mlm: {mask_token: 3}\n" if task == "masked_lm" else "") +
            "training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3}\noutput: {dir: out}\n")


def run_training(binary, folder, run, settings, how, environment=None):
    """Events, and the file of the final weights."""
    (folder / "run.yaml").write_text(run)
    subprocess.run(["rm", "-rf", str(folder / "out")], check=True)
    done = subprocess.run([binary, "train", "run.yaml", "--json", *shlex.split(settings), *how], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    final = next(path for path in (folder / "out/final").glob("*model.safetensors"))
    return [json.loads(line) for line in done.stdout.splitlines()], final


def train(binary, folder, what, how):
    """Events, and the digest of the final weights."""
    name, task, settings = what
    events, final = run_training(binary, folder, run_file(MODELS[name][0], task), settings, how)
    return events, hashlib.sha256(final.read_bytes()).hexdigest()


def least_budget(binary, folder, what, how):
    """The bytes that the program names for that training, run that way."""
    (folder / "run.yaml").write_text(run_file(MODELS[what[0]][0], what[1]))
    refused = subprocess.run([binary, "plan", "run.yaml", *shlex.split(what[2]), *how, "memory.budget=1MiB"], cwd=folder, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True).stderr
    found = re.search(r"\((\d+) bytes\)", refused)
    return int(found.group(1)) if found else None


def numbers(events):
    return [(e["step"], e["loss"], e["grad_norm"], e.get("loss_scale")) for e in events if e["event"] == "step"]


def troubles(events, digest, plain, how):
    found = []
    if numbers(events) != numbers(plain[0]):
        found.append("losses or norms differ")
    if digest != plain[1]:
        found.append("final weights differ")
    summary = next(e for e in events if e["event"] == "summary")
    pairs = [("planned_peak_bytes", "measured_peak_bytes")]
    if "host_planned_peak_bytes" in summary:
        pairs.append(("host_planned_peak_bytes", "host_measured_peak_bytes"))
    for planned, measured in pairs:
        a, b = summary[planned], summary[measured]
        if b > a or a - b > max(32 << 20, 0.03 * b):
            found.append(f"{planned} {a}, {measured} {b}")
    if summary["allocations_after_first_step"] != 0:
        found.append(f"{summary['allocations_after_first_step']} allocations")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lora", action="store_true", help="adapters learn, of a random kind")
    parser.add_argument("--on-host", action="store_true", help="the host updates, beside a discrete device")
    parser.add_argument("--keep", help="work in this folder and leave it")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    dice = random.Random(arguments.seed)
    plain, failed = {}, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_data(folder, dice)
        rules = optimizers(binary, folder)
        for name in MODELS if arguments.lora else []:
            base_model(binary, folder, name)
        for number in range(arguments.count):
            what = what_of(dice, rules, arguments.lora)
            how = how_of(dice, what[0], what[2], arguments.on_host)
            try:
                if what not in plain:
                    plain[what] = train(binary, folder, what, ["memory.recompute=none", "runtime.threads=1",
                                                               "training.micro_batch_size=8"])
                if how[0].endswith("=auto") and dice.random() < 0.5:
                    least = least_budget(binary, folder, what, how)
                    how += [f"memory.budget={least}"] if least else []
                found = troubles(*train(binary, folder, what, how), plain[what], how)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                found = [str(error)]
            if found:
                failed += 1
                print(f"{number}: {' '.join(what)} | {' '.join(how)}: {'; '.join(found)}", flush=True)
    print(f"{arguments.count} combinations over {len(plain)} trainings ({', '.join(rules)}), {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
