"""Holds runs made by `plimsoll import` against the program whose configuration was imported: the loss of each step.

    python import_compare.py --binary build/plimsoll [--only TEXT]

The configurations are those of tests/importing/configs. Each is imported by the command; model, data and what its
machine lacks are set by overrides, the same on both sides, and printed. transformers' Trainer and TRL's
SFTTrainer then train with the arguments of that very file, torchtune's with the optimizer and the schedule that its
file names, handed to a Trainer. Programs draw the order of an epoch each in its own way: here all take the
data as it lies (`data.shuffle: false`, a sequential sampler), and its count is a multiple of the batch. All in fp32.
One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import datasets  # noqa: E402
import numpy  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
import yaml  # noqa: E402

from checks import Checks  # noqa: E402

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "importing" / "configs"
LOSS_TOLERANCE = 1e-5  # relative
WORDS = "the ship is loaded to her line and no further cargo ballast water and weather are weighed before she sails".split()
TEMPLATE = ("{% for message in messages %}<|turn|>{{ message['role'] }}\n"
            "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
            "{% else %}{{ message['content'] }}<|end|>{% endif %}\n{% endfor %}"
            "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}")
# What transformers 5 no longer takes, and what is of its script or of a logger.
FOREIGN = {"model_name_or_path", "train_file", "validation_file", "block_size", "preprocessing_num_workers", "overwrite_cache",
           "max_grad_nrom", "load_best_model_at_end", "metric_for_best_model", "push_to_hub", "hub_token", "group_by_length",
           "report_to", "dataset_name", "dataset_train_split", "dtype", "max_seq_length", "save_strategy", "eval_strategy",
           "save_steps", "eval_steps", "torch_compile", "eos_token", "neftune_noise_alpha", "model_init_kwargs", "dataloader_num_workers",
           "gradient_checkpointing_kwargs", "dataset_num_proc"}


def write_tokenizer(folder):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([" ".join(WORDS)] * 10, tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|turn|>", "<|end|>", "<|pad|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "pad_token": "<|pad|>", "chat_template": TEMPLATE}))


def write_model(folder):
    folder.mkdir()
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=400, hidden_size=60, intermediate_size=77, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
        head_dim=20, max_position_embeddings=512, initializer_range=0.1, tie_word_embeddings=True, eos_token_id=1, pad_token_id=2,
        bos_token_id=None)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    write_tokenizer(folder)


def sentence(random, most):
    return " ".join(random.choice(WORDS, random.integers(2, most)))


def chats(random, count):
    return [{"messages": [{"role": role, "content": sentence(random, 6)} for role in ("user", "assistant")]} for _ in range(count)]


def texts(random, count, most):
    return [{"content": sentence(random, most)} for _ in range(count)]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class InOrder:
    """Mixed into a Trainer: rows as they lie, each step's loss as the step computes it."""

    def __init__(self, *args, **kwargs):
        self.seen = []
        super().__init__(*args, **kwargs)
        self.remove_callback(transformers.trainer_callback.PrinterCallback)

    def _get_train_sampler(self, dataset=None):
        return torch.utils.data.SequentialSampler(dataset if dataset is not None else self.train_dataset)

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.seen.append(float(loss))
        return loss

    def losses(self):
        n = self.args.gradient_accumulation_steps
        return [sum(self.seen[i:i + n]) for i in range(0, len(self.seen), n)]


class Trainer(InOrder, transformers.Trainer):
    pass


class SFTTrainer(InOrder, trl.SFTTrainer):
    pass


def arguments_of(name, kind, folder, **changes):
    """The file's arguments as `kind` takes them: the very values, without what has to do with files and loggers."""
    text = (CONFIGS / name).read_text()
    given = json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
    known = kind.__dataclass_fields__
    if isinstance(given.get("lr_scheduler_kwargs"), str):
        given["lr_scheduler_kwargs"] = yaml.safe_load(given["lr_scheduler_kwargs"])
    kept = {key: value for key, value in given.items() if key in known and key not in FOREIGN}
    for key, older in (("warmup_steps", "warmup_ratio"), ("max_length", "max_seq_length")):
        if given.get(older) and key in known and not kept.get(key):  # version 5 has one name for both
            kept[key] = given[older]
    kept |= dict(output_dir=str(folder / "theirs"), use_cpu=True, report_to="none", save_strategy="no", eval_strategy="no",
                 disable_tqdm=True, dataloader_num_workers=0)
    return kind(**(kept | changes))


def padded(rows, pad=2):
    """A collator for rows of (ids, labels)."""
    width = max(len(row["input_ids"]) for row in rows)
    fill = [(row, width - len(row["input_ids"])) for row in rows]
    return {"input_ids": torch.tensor([list(r["input_ids"]) + [pad] * n for r, n in fill]),
            "labels": torch.tensor([list(r["labels"]) + [-100] * n for r, n in fill]),
            "attention_mask": torch.tensor([[1] * len(r["input_ids"]) + [0] * n for r, n in fill])}


def train_theirs(folder, arguments, rows, optimizers=(None, None)):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    make = optimizers(model) if callable(optimizers) else optimizers
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=padded, optimizers=make)
    trainer.train()
    return trainer.losses()


def train_trl(folder, arguments, file):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    data = datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(folder / "cache"))
    trainer = SFTTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    return trainer.losses()


def train_ours(binary, folder, name, overrides):
    """Imports the file and trains; the losses of the steps."""
    run = folder / "run.yaml"
    imported = subprocess.run([binary, "import", str(CONFIGS / name), "--output", str(run)], text=True, capture_output=True)
    if imported.returncode != 0:
        raise RuntimeError(imported.stderr)
    common = {"model.path": folder / "model", "output.dir": folder / "ours", "data.shuffle": "false", "data.cache_dir": "null"}
    given = [f"{key}={value}" for key, value in (common | overrides).items()]
    done = subprocess.run([binary, "train", str(run), "--json", "--resume", "never", *given], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event["loss"] for event in events if event["event"] == "step"], [f"{k}={v}" for k, v in overrides.items()]


def token_rows(random, folder, count, length):
    tokens = random.integers(3, 400, (count, length), dtype=numpy.int32)
    numpy.save(folder / "tokens.npy", tokens)
    rows = [{"input_ids": row.tolist(), "labels": row.tolist()} for row in tokens]
    return rows, {"data.train": folder / "tokens.npy", "data.sequence_length": length}


def case_dump(random, folder):
    """A dump of TrainingArguments: cosine, warm-up, decay, accumulation."""
    rows, overrides = token_rows(random, folder, 32, 24)
    kept = arguments_of("transformers_dump.json", transformers.TrainingArguments, folder)
    return overrides, lambda: train_theirs(folder, kept, rows)


def case_script(random, folder):
    """Arguments of a script: polynomial with its power and end, warm-up as a share, epochs, no clipping."""
    rows, overrides = token_rows(random, folder, 24, 32)
    kept = arguments_of("transformers_script.yaml", transformers.TrainingArguments, folder, max_grad_norm=0.0)
    return overrides | {"data.eval": "[]"}, lambda: train_theirs(folder, kept, rows)


def case_sgd(random, folder):
    """SGD with decay, constant with warm-up as a ratio."""
    rows, overrides = token_rows(random, folder, 36, 19)
    kept = arguments_of("transformers_sgd.yaml", transformers.TrainingArguments, folder)
    return overrides, lambda: train_theirs(folder, kept, rows)


def case_sft(random, folder):
    """TRL's SFTTrainer on conversations: every token of them is a target, some are longer than max_length."""
    write_lines(folder / "chats.jsonl", chats(random, 8))
    kept = arguments_of("trl_sft.yaml", trl.SFTConfig, folder, bf16=False, gradient_checkpointing=False)
    return {"data.train": folder / "chats.jsonl"}, lambda: train_trl(folder, kept, folder / "chats.jsonl")


def case_prompts(random, folder):
    """TRL's two masks at once: every answer is a target, those within the prompts too."""
    def turns(*roles):
        return [{"role": role, "content": sentence(random, 6)} for role in roles]
    write_lines(folder / "dialogues.jsonl", [{"prompt": turns("user", "assistant", "user"), "completion": turns("assistant")}
                                             for _ in range(16)])
    kept = arguments_of("trl_prompts.yaml", trl.SFTConfig, folder)
    return {"data.train": folder / "dialogues.jsonl"}, lambda: train_trl(folder, kept, folder / "dialogues.jsonl")


def case_text(random, folder):
    """TRL's SFTTrainer on texts of another field, cosine with restarts, decay, an epoch; some are too long."""
    write_lines(folder / "texts.jsonl", texts(random, 20, 30))
    kept = arguments_of("trl_completion.json", trl.SFTConfig, folder, bf16=False)
    return {"data.train": folder / "texts.jsonl"}, lambda: train_trl(folder, kept, folder / "texts.jsonl")


def chat_rows(folder, lines):
    """The assistant's turns as targets."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    rows = []
    for line in lines:
        out = tokenizer.apply_chat_template(line["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        ids, mask = list(out["input_ids"]), list(out["assistant_masks"])
        rows.append({"input_ids": ids, "labels": [t if m else -100 for t, m in zip(ids, mask)]})
    return rows


def case_torchtune(random, folder):
    """torchtune: torch.optim.AdamW over every parameter, its cosine, no clipping, the assistant's turns."""
    lines = chats(random, 24)
    write_lines(folder / "chats.jsonl", lines)
    given = yaml.safe_load((CONFIGS / "torchtune_full.yaml").read_text())
    steps = given["epochs"] * given["max_steps_per_epoch"]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "theirs"), use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True, max_steps=steps,
        per_device_train_batch_size=given["batch_size"], gradient_accumulation_steps=given["gradient_accumulation_steps"],
        max_grad_norm=0.0, logging_steps=1)

    def optimizers(model):
        rule = torch.optim.AdamW(model.parameters(), lr=float(given["optimizer"]["lr"]), betas=given["optimizer"]["betas"])
        warmup = given["lr_scheduler"]["num_warmup_steps"]
        return rule, transformers.get_cosine_schedule_with_warmup(rule, warmup, steps)
    return {"data.train": folder / "chats.jsonl"}, lambda: train_theirs(folder, arguments, chat_rows(folder, lines), optimizers)


def case_axolotl(random, folder):
    """axolotl, whose trainer is transformers': the assistant's turns, two epochs. In fp32, nothing held out."""
    lines = chats(random, 16)
    write_lines(folder / "chats.jsonl", lines)
    given = yaml.safe_load((CONFIGS / "axolotl_full.yaml").read_text())
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "theirs"), use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=1,
        per_device_train_batch_size=given["micro_batch_size"], gradient_accumulation_steps=given["gradient_accumulation_steps"],
        num_train_epochs=given["num_epochs"], optim=given["optimizer"], lr_scheduler_type=given["lr_scheduler"],
        learning_rate=given["learning_rate"], warmup_steps=given["warmup_steps"], weight_decay=given["weight_decay"])
    overrides = {"data.train": folder / "chats.jsonl", "data.eval_fraction": 0, "training.precision": "fp32"}
    return overrides, lambda: train_theirs(folder, arguments, chat_rows(folder, lines))


CASES = {"transformers_dump.json": case_dump, "transformers_script.yaml": case_script, "transformers_sgd.yaml": case_sgd,
         "trl_sft.yaml": case_sft, "trl_completion.json": case_text, "trl_prompts.yaml": case_prompts, "torchtune_full.yaml": case_torchtune,
         "axolotl_full.yaml": case_axolotl}


def compare(name, binary, folder, checks):
    folder.mkdir()
    write_model(folder / "model")
    overrides, theirs = CASES[name](numpy.random.default_rng(sum(map(ord, name))), folder)
    ours, told = train_ours(binary, folder, name, overrides)
    reference = theirs()
    print(f"     {name}: set on both sides: {', '.join(told).replace(str(folder) + '/', '')}")
    checks.check(name, "steps", len(ours) == len(reference), f"{len(ours)} of {len(reference)}")
    checks.worst(name, "loss", [(abs(a - b) / abs(b), LOSS_TOLERANCE, f"step {i + 1}: {a:.7g}, {b:.7g}")
                                for i, (a, b) in enumerate(zip(ours, reference))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            if given.only in name:
                compare(name, str(pathlib.Path(given.binary).resolve()), pathlib.Path(folder) / name, checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
