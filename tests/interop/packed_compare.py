"""Holds training on packed documents against PyTorch: loss and gradients of one step over a whole data set.

    python packed_compare.py [--binary build/plimsoll] [--only TEXT]

Texts, conversations, prompts with completions, and a mixture are tokenized, packed and trained on by one command; the
reference renders and tokenizes with transformers, runs each document alone, masks what is not in the loss, and divides
the sum by all targets. As the step takes in every sequence, their order does not matter. With length buckets, an epoch
of small steps that change no weight takes their place: each step's loss and gradients, weighted by its targets. One
line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import safetensors.torch  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
from checks import Checks  # noqa: E402

LOSS_TOLERANCE = 1e-5    # relative
TENSOR_TOLERANCE = 1e-4  # of the reference's norm …
FLOOR_TOLERANCE = 1e-6   # … and of the norm of all gradients
LENGTH = 96
WORDS = ("the ship is loaded to her line and no further; cargo, ballast, water and weather are weighed before she sails "
         "for Αθήνα or 横浜 with 17 crates of naïve façades").split()
TEMPLATE = ("{% for message in messages %}<|turn|>{{ message['role'] }}\n"
            "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
            "{% else %}{{ message['content'] }}<|end|>{% endif %}\n{% endfor %}"
            "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}")

MODELS = {name: transformers.AutoConfig.for_model(**sample | dict(vocab_size=600))
          for name, sample in cases.FAMILIES.items()}


def sentence(random, most):
    count = int(torch.randint(1, most, (1,), generator=random))
    return " ".join(WORDS[int(i)] for i in torch.randint(0, len(WORDS), (count,), generator=random))


def write_tokenizer(folder):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([" ".join(WORDS)] * 10, tokenizers.trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|turn|>", "<|end|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "chat_template": TEMPLATE}))
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def records(random, count):
    """Lines of each kind."""
    def chat():
        turns = int(torch.randint(1, 3, (1,), generator=random))
        return {"messages": [{"role": role, "content": sentence(random, 9)} for _ in range(turns)
                             for role in ("user", "assistant")]}
    return {
        "texts": [{"text": sentence(random, 50)} for _ in range(count)],
        "conversations": [chat() for _ in range(count)],
        "completions": [{"prompt": sentence(random, 20) + " ", "completion": sentence(random, 20)}
                        for _ in range(count)],
    }


def documents(tokenizer, lines):
    """(ids, in the loss) of each line."""
    result = []
    for line in lines:
        if "text" in line:
            ids = tokenizer(line["text"], add_special_tokens=False).input_ids
            result.append((ids, [1] * len(ids)))
        elif "messages" in line:
            out = tokenizer.apply_chat_template(line["messages"], tokenize=True, return_dict=True,
                                                return_assistant_tokens_mask=True)
            result.append((list(out["input_ids"]), list(out["assistant_masks"])))
        else:
            text = line["prompt"] + line["completion"] + tokenizer.eos_token  # as TRL, and append_eos: auto
            whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            result.append((whole.input_ids, [int(end > len(line["prompt"])) for _, end in whole.offset_mapping]))
    return [(ids, mask) for ids, mask in result if len(ids) <= LENGTH and any(mask[1:])]


def reference(model, docs):
    """Loss and gradients of the mean over all targets; each document alone."""
    model.zero_grad()
    targets = sum(sum(mask[1:]) for _, mask in docs)
    total = 0.0
    for ids, mask in docs:
        inputs = torch.tensor([ids])
        labels = torch.tensor([t if m else -100 for t, m in zip(ids, mask)])
        logits = model(input_ids=inputs).logits[0, :-1]
        loss = torch.nn.functional.cross_entropy(logits, labels[1:], reduction="sum", ignore_index=-100) / targets
        loss.backward()
        total += loss.item()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return total, targets, gradients


def train(binary, folder, settings):
    command = [binary, "train", str(folder / "run.yaml"), "--json", *settings]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def sequences_of(stderr):
    return int(stderr.split("documents into ")[1].split(" ")[0])


def compare(name, model, tokenizer, lines, data, binary, folder, checks):
    docs = documents(tokenizer, lines)
    loss, targets, gradients = reference(model, docs)
    write_run(folder, data)
    _, told = train(binary, folder, ["training.global_batch_size=1", "--resume", "never"])
    count = sequences_of(told)
    micro = next(m for m in (3, 2, 1) if count % m == 0)
    events, _ = train(binary, folder, [f"training.global_batch_size={count}", f"training.micro_batch_size={micro}",
                                       "--resume", "never"])
    step = next(e for e in events if e["event"] == "step")
    checks.check(name, "tokens", step["tokens"] == sum(len(ids) for ids, _ in docs),
                 f"{step['tokens']} in {count} sequences, {targets} targets")
    checks.worst(name, "loss", [(abs(step["loss"] - loss) / loss, LOSS_TOLERANCE, "relative")])
    dump = safetensors.torch.load_file(str(folder / "dump" / "step-000001.safetensors"))
    compare_gradients(name, dump, gradients, checks)


def write_run(folder, data):
    (folder / "run.yaml").write_text(json.dumps({
        "model": {"path": str(folder / "model")},
        "data": {"sequence_length": LENGTH, "long_documents": "drop", "shuffle": True} | data,
        "training": {"max_steps": 1, "lr_scheduler": "constant", "learning_rate": 0},
        "output": {"dir": str(folder / "out")}, "debug": {"dump_dir": str(folder / "dump")}}))


def compare_gradients(name, dumped, gradients, checks):
    floor = FLOOR_TOLERANCE * sum(float(g.norm()) ** 2 for g in gradients.values()) ** 0.5
    checks.worst(name, "gradients", [
        (float((dumped["grad." + key] - g).norm()), TENSOR_TOLERANCE * float(g.norm()) + floor, key)
        for key, g in gradients.items()])


def compare_buckets(name, model, tokenizer, lines, binary, folder, checks):
    """Texts, all of which are targets but their first tokens; batches of three."""
    while len(documents(tokenizer, lines)) % 3:
        lines = lines[:-1]
    docs = documents(tokenizer, lines)
    path = folder / "buckets.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    loss, targets, gradients = reference(model, docs)
    write_run(folder, {"train": str(path), "packing": "pad", "buckets": [20, 48]})
    events, told = train(binary, folder, ["training.global_batch_size=3", "training.micro_batch_size=1",
                                          f"training.max_steps={len(docs) // 3}", "--resume", "never"])
    steps = [e for e in events if e["event"] == "step"]
    share = [(s["tokens"] - 3) / targets for s in steps]
    longest = max(s["tokens"] for s in steps)
    checks.check(name, "batches", "in buckets of 20, 48, 96 tokens" in told and abs(sum(share) - 1) < 1e-9
                 and min(s["tokens"] for s in steps) <= 3 * 20 < 3 * 48 < longest, f"{len(steps)}, of up to {longest} tokens")
    checks.worst(name, "loss", [(abs(sum(w * s["loss"] for w, s in zip(share, steps)) - loss) / loss, LOSS_TOLERANCE,
                                 "relative")])
    dumps = [safetensors.torch.load_file(str(folder / "dump" / f"step-{i + 1:06}.safetensors"))
             for i in range(len(steps))]
    compare_gradients(name, {"grad." + key: sum(w * dump["grad." + key] for w, dump in zip(share, dumps))
                             for key in gradients}, gradients, checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="models whose name holds this text")
    args = parser.parse_args()
    binary, chosen = str(pathlib.Path(args.binary).resolve()), [name for name in MODELS if args.only in name]
    transformers.logging.set_verbosity_error()
    checks = Checks()
    for name, config in ((name, MODELS[name]) for name in chosen):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            torch.manual_seed(1)
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
            model.save_pretrained(folder / "model")
            tokenizer = write_tokenizer(folder / "model")
            kinds = records(torch.Generator().manual_seed(5), 30)
            for kind, lines in kinds.items():
                path = folder / f"{kind}.jsonl"
                path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
                compare(f"{name}, {kind}", model, tokenizer, lines, {"train": str(path)}, binary, folder, checks)
            compare(f"{name}, all joined", model, tokenizer, sum(kinds.values(), []),
                    {"train": [str(folder / f"{kind}.jsonl") for kind in kinds]}, binary, folder, checks)
            compare_buckets(f"{name}, texts in buckets", model, tokenizer, kinds["texts"], binary, folder, checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed > 0 or not chosen)


if __name__ == "__main__":
    main()
