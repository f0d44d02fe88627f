"""Holds `plimsoll generate` against transformers' generate: greedy, token for token; chats, penalties and ends of
sequences too. The filters of sampling are held against transformers' processors by what may be drawn.

    python generate_compare.py --binary build/plimsoll [--only TEXT] [--prompts N] [--keep DIR]

For each family a small model with random weights is saved by transformers, with prompts from one token to beyond
every window and chunk. Plimsoll takes them in batches and one by one; transformers each alone. One line per check,
PASS or FAIL; exit code 1 if any fails. Where ids differ, the line says by how much transformers preferred its own
token: a gap of a rounding error is a tie.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
from checks import Checks  # noqa: E402

NEW_TOKENS = 64
WIDE = dict(initializer_range=0.2)  # logits far apart, so that ties are rare

# Of every family what its list has, and what some have beside it.
MODELS = [(name, sample | WIDE | (dict(n_positions=300) if "n_positions" in sample else {}))
          for name, sample in cases.FAMILIES.items()] + [
    ("llama, biases, tied", cases.LLAMA | WIDE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    ("llama, rope llama3", cases.LLAMA | WIDE | dict(rope_theta=500000.0, rope_scaling=cases.LLAMA3_ROPE)),
    ("llama, rope linear", cases.LLAMA | WIDE | dict(rope_scaling=dict(rope_type="linear", factor=2.5))),
    ("llama, rope yarn", cases.LLAMA | WIDE | dict(rope_scaling=dict(rope_type="yarn", factor=4.0,
                                                                     original_max_position_embeddings=128))),
    ("llama, one KV head", cases.LLAMA | WIDE | dict(num_key_value_heads=1)),
    ("mistral, beyond its window", cases.MISTRAL | WIDE | dict(sliding_window=23, num_key_value_heads=1)),
    ("qwen2, windows by layer", cases.QWEN2 | WIDE | dict(use_sliding_window=True, sliding_window=11,
                                                          max_window_layers=1)),
    ("smollm3, layers without positions slide", cases.SMOLLM3 | WIDE | dict(use_sliding_window=True, sliding_window=11,
                                                                            no_rope_layers=[0, 1, 0])),
    ("gpt2, to its last position", cases.GPT2 | WIDE | dict(n_positions=163)),
]


def prompts_of(name, vocab_size, count):
    """Lengths from 1 to 100, the longest twice a cache line of anything."""
    random = numpy.random.default_rng(sum(map(ord, name)))
    lengths = numpy.linspace(1, 100, count).astype(int)
    return [random.integers(3, vocab_size, length).tolist() for length in random.permutation(lengths)]


def save(config, folder):
    transformers.set_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).float().eval()
    with torch.no_grad():  # zeros and ones hide what is added or multiplied with them
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return model


def generations(binary, folder, lines, *flags):
    """The events of the lines' results."""
    file = folder / "prompts.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [binary, "generate", "--model", str(folder), "--messages", str(file), "--json", *flags]
    if "--max-new-tokens" not in flags:
        command += ["--max-new-tokens", str(NEW_TOKENS)]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event["event"] == "generation"]


def ours(binary, folder, prompts, *flags):
    return [event["tokens"] for event in generations(binary, folder, [{"ids": ids} for ids in prompts], *flags)]


def theirs(model, ids, **generation):
    """The new ids, and at each step how far the largest logit is above the next."""
    with torch.inference_mode():
        out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                             max_new_tokens=NEW_TOKENS, output_scores=True, return_dict_in_generate=True,
                             pad_token_id=0, **generation)
    gaps = [float(-torch.diff(torch.topk(step[0], 2).values)) for step in out.scores]
    return out.sequences[0, len(ids):].tolist(), gaps


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(name, binary, config, count, folder):
    model = save(config, folder)
    prompts = prompts_of(name, config["vocab_size"], count)
    together = ours(binary, folder, prompts, "--batch-size", "7")
    alone = ours(binary, folder, prompts, "--batch-size", "1", "--threads", "1")
    results = [("one by one as in batches", together == alone, f"{len(alone)} prompts")]
    wrong = differences(model, prompts, together)
    tokens = sum(map(len, together))
    results.append(("greedy ids", not wrong, "; ".join(wrong) or f"{len(prompts)} prompts, {tokens} tokens"))
    return results


def differences(model, prompts, got, **generation):
    """What of the ids is not transformers', as texts."""
    wrong = []
    for i, ids in enumerate(prompts):
        expected, gaps = theirs(model, ids, **generation)
        if got[i] != expected:
            at = first_difference(got[i], expected)
            wrong.append(f"prompt {i} differs at {at}, gap {f'{gaps[at]:.1e}' if at < len(gaps) else 'none'}")
    return wrong


def compare_ends(binary, model, folder, prompts):
    """Two ends of sequences in generation_config.json, from the middle of the two longest texts: how long a text
    gets depends on the machine, whose torch draws the weights."""
    longest = sorted(ours(binary, folder, prompts), key=len)[-2:]
    ends = [ids[len(ids) // 2] for ids in longest]
    path = folder / "generation_config.json"
    before = path.read_text()
    path.write_text(json.dumps(json.loads(before) | {"eos_token_id": ends}))
    lines = generations(binary, folder, [{"ids": ids} for ids in prompts])
    path.write_text(before)
    wrong = differences(model, prompts, [line["tokens"] for line in lines], eos_token_id=ends)
    reasons = [line["finish_reason"] for line in lines]
    wrong += [f"prompt {i} ends with {r}" for i, (r, line) in enumerate(zip(reasons, lines))
              if (r == "stop") != (line["tokens"][-1] in ends)]
    return "ends of sequences", not wrong, "; ".join(wrong) or f"{reasons.count('stop')} of {len(prompts)} stopped"


def compare_penalty(binary, model, folder, prompts):
    wrong = []
    for penalty in (1.3, 0.8):
        got = ours(binary, folder, prompts, "--repetition-penalty", str(penalty))
        wrong += differences(model, prompts, got, repetition_penalty=penalty)
    return "repetition penalty", not wrong, "; ".join(wrong) or f"{len(prompts)} prompts, 2 penalties"


def allowed(model, ids, flags):
    """The ids that transformers' processors leave after a prompt."""
    with torch.inference_mode():
        scores = model(torch.tensor([ids])).logits[:, -1].float()
    config = transformers.GenerationConfig(**dict(do_sample=True, top_k=0) | flags)
    config._pad_token_tensor = None
    processors = model._get_logits_processor(config, input_ids_seq_length=len(ids), device="cpu",
                                             logits_processor=transformers.LogitsProcessorList())
    left = processors(torch.tensor([ids]), scores)[0]
    return set(torch.nonzero(torch.isfinite(left)).flatten().tolist())


def compare_filters(binary, model, folder, prompts):
    """First tokens drawn with many seeds: all of what transformers leaves comes, and nothing else."""
    settings = [dict(top_k=5), dict(top_p=0.6), dict(min_p=0.2), dict(top_k=8, top_p=0.8, min_p=0.1, temperature=2.0),
                dict(repetition_penalty=1.5, min_p=0.3)]
    wrong, draws = [], 0
    for flags in settings:
        given = [text for name, value in flags.items() for text in ("--" + name.replace("_", "-"), str(value))]
        if "top_k" not in flags:
            given += ["--top-k", "0"]
        if "temperature" not in flags:
            given += ["--temperature", "1"]
        expected = allowed(model, prompts[0], flags)
        got = ours(binary, folder, [prompts[0]] * 400, "--max-new-tokens", "1", *given)
        drawn = {ids[0] for ids in got}
        draws += len(got)
        if not drawn <= expected or len(drawn) < min(len(expected), 3):
            wrong.append(f"{flags}: drew {sorted(drawn)}, transformers leaves {sorted(expected)}")
    return "filters", not wrong, "; ".join(wrong) or f"{len(settings)} settings, {draws} draws"


CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
CHATS = [
    [{"role": "user", "content": "How deep does she lie?"}],
    [{"role": "system", "content": "Answer in one line."}, {"role": "user", "content": "Façade – or é?"}],
    [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}, {"role": "user", "content": "Three?"}],
]


def save_tokenizer(folder):
    """A byte-level BPE trained on these scripts, with ChatML."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    texts = [path.read_text() for path in sorted(pathlib.Path(__file__).parent.glob("*.py"))]
    bpe.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>",
                                                     bos_token="<|endoftext|>")
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(folder)
    return tokenizer


def compare_chats(binary, folder):
    tokenizer = save_tokenizer(folder)
    model = save(cases.LLAMA | WIDE | dict(vocab_size=len(tokenizer), eos_token_id=2), folder)
    lines = generations(binary, folder, [{"messages": chat} for chat in CHATS])
    prompts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in CHATS]
    ids = [tokenizer.encode(prompt, add_special_tokens=False) for prompt in prompts]
    wrong = [f"chat {i} is rendered as {line['prompt']!r}" for i, line in enumerate(lines) if line["prompt"] != prompts[i]]
    wrong += differences(model, ids, [line["tokens"] for line in lines])
    wrong += [f"chat {i}: text {line['text']!r}" for i, line in enumerate(lines)
              if line["text"] != tokenizer.decode(line["tokens"], skip_special_tokens=True)]
    yield "chats", not wrong, "; ".join(wrong) or f"{len(CHATS)} conversations, texts alike"
    plain = generations(binary, folder, [{"prompt": CHATS[0][0]["content"]}, {"prompt": "x"}], "--system", "Be brief.")
    asked = tokenizer.apply_chat_template([{"role": "system", "content": "Be brief."}, *CHATS[0]], tokenize=False,
                                          add_generation_prompt=True)
    wrong = differences(model, [tokenizer.encode(asked)], [plain[0]["tokens"]])
    raw = generations(binary, folder, [{"prompt": "One two"}], "--raw")
    wrong += differences(model, [tokenizer.encode("One two")], [raw[0]["tokens"]])
    yield "a prompt with --system, and --raw", not wrong, "; ".join(wrong) or "alike"
    chat, longest = max(zip(CHATS, lines), key=lambda pair: len(pair[1]["text"]))
    middle = len(longest["text"]) // 2
    stop = longest["text"][middle:middle + 3]
    cut = generations(binary, folder, [{"messages": chat}], "--stop", stop)[0]
    good = cut["text"] == longest["text"].split(stop)[0] and cut["tokens"] == longest["tokens"][:len(cut["tokens"])]
    yield "a text that stops", good and cut["finish_reason"] == "stop", f"{stop!r} after {len(cut['tokens'])} tokens"


def agreement(all_ids, expected):
    """The mean share of ids up to the first that differs."""
    return numpy.mean([first_difference(a, b) / len(b) for a, b in zip(all_ids, expected)])


def compare_bf16(binary, count, folder):
    """How far texts in bf16 stay those of fp32: ours no less than transformers', but for chance."""
    config = cases.LLAMA | WIDE
    model = save(config, folder)
    prompts = prompts_of("bf16", config["vocab_size"], 2 * count)
    exact = [theirs(model, ids)[0] for ids in prompts]
    mine = ours(binary, folder, prompts, "--dtype", "bf16")
    alone = ours(binary, folder, prompts, "--dtype", "bf16", "--batch-size", "1", "--threads", "1")
    yield "one by one as in batches", mine == alone, f"{len(alone)} prompts"
    model.to(torch.bfloat16)
    peer = agreement([theirs(model, ids)[0] for ids in prompts], exact)
    own = agreement(mine, exact)
    yield "ids as in fp32", own >= peer - 0.1, f"{own:.2f} of them, transformers' bf16 {peer:.2f}"


def compare_controls(binary, count, folder):
    config = cases.LLAMA | WIDE
    model = save(config, folder)
    prompts = prompts_of("controls", config["vocab_size"], count)
    yield compare_ends(binary, model, folder, prompts)
    yield compare_penalty(binary, model, folder, prompts)
    yield compare_filters(binary, model, folder, prompts)


def groups(arguments, folder_of):
    """(name, results) of each group of checks."""
    for name, config in MODELS:
        yield name, lambda: compare(name, arguments.binary, config, arguments.prompts, folder_of(name))
    yield "controls", lambda: compare_controls(arguments.binary, arguments.prompts, folder_of("controls"))
    yield "bf16", lambda: compare_bf16(arguments.binary, arguments.prompts, folder_of("bf16"))
    yield "conversations", lambda: compare_chats(arguments.binary, folder_of("conversations"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--keep", help="write models and prompts under this directory")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(arguments.keep or temporary)

        def folder_of(name):
            folder = root / name.replace(", ", "-").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            return folder

        for name, results in groups(arguments, folder_of):
            if arguments.only not in name:
                continue
            for what, ok, detail in results():
                checks.check(name, what, ok, detail)
    print(f"{checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
