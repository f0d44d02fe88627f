"""Holds `plimsoll generate` against transformers' generate: greedy, token for token.

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

NEW_TOKENS = 64
WIDE = dict(initializer_range=0.2)  # logits far apart, so that ties are rare

MODELS = [
    ("llama", cases.LLAMA | WIDE | dict(num_key_value_heads=1)),
    ("llama, biases, tied", cases.LLAMA | WIDE | dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    ("llama, rope llama3", cases.LLAMA | WIDE | dict(rope_theta=500000.0, rope_scaling=cases.LLAMA3_ROPE)),
    ("llama, rope linear", cases.LLAMA | WIDE | dict(rope_scaling=dict(rope_type="linear", factor=2.5))),
    ("llama, rope yarn", cases.LLAMA | WIDE | dict(rope_scaling=dict(rope_type="yarn", factor=4.0,
                                                                     original_max_position_embeddings=128))),
    ("mistral, beyond its window", cases.MISTRAL | WIDE | dict(sliding_window=23, num_key_value_heads=1)),
    ("qwen2", cases.QWEN2 | WIDE),
    ("qwen2, windows by layer", cases.QWEN2 | WIDE | dict(use_sliding_window=True, sliding_window=11,
                                                          max_window_layers=1)),
    ("qwen3", cases.QWEN3 | WIDE),
    ("smollm3", cases.SMOLLM3 | WIDE),
    ("smollm3, layers without positions slide", cases.SMOLLM3 | WIDE | dict(use_sliding_window=True, sliding_window=11,
                                                                            no_rope_layers=[0, 1, 0])),
    ("gpt2", cases.GPT2 | WIDE | dict(n_positions=300)),
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


def ours(binary, folder, prompts, *flags):
    file = folder / "prompts.jsonl"
    file.write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in prompts))
    command = [binary, "generate", "--model", str(folder), "--prompts", str(file), "--max-new-tokens", str(NEW_TOKENS),
               "--json", *flags]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event["ids"] for event in events if event["event"] == "generation"]


def theirs(model, ids):
    """The new ids, and at each step how far the largest logit is above the next."""
    with torch.inference_mode():
        out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                             max_new_tokens=NEW_TOKENS, output_logits=True, return_dict_in_generate=True,
                             pad_token_id=0)
    gaps = [float(-torch.diff(torch.topk(step[0], 2).values)) for step in out.logits]
    return out.sequences[0, len(ids):].tolist(), gaps


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def compare(name, binary, config, count, folder):
    model = save(config, folder)
    prompts = prompts_of(name, config["vocab_size"], count)
    together = ours(binary, folder, prompts, "--batch-size", "7")
    alone = ours(binary, folder, prompts, "--batch-size", "1", "--threads", "1")
    results = [("one by one as in batches", together == alone, f"{len(alone)} prompts")]
    tokens, wrong = 0, []
    for i, ids in enumerate(prompts):
        expected, gaps = theirs(model, ids)
        tokens += len(expected)
        if together[i] != expected:
            at = first_difference(together[i], expected)
            gap = f"{gaps[at]:.1e}" if at < len(gaps) else "none"
            wrong.append(f"prompt {i} of {len(ids)} tokens differs at {at}, gap {gap}")
    results.append(("greedy ids", not wrong, "; ".join(wrong) or f"{len(prompts)} prompts, {tokens} tokens"))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--keep", help="write models and prompts under this directory")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(arguments.keep or temporary)
        for name, config in MODELS:
            if arguments.only not in name:
                continue
            folder = root / name.replace(", ", "-").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            for what, ok, detail in compare(name, arguments.binary, config, arguments.prompts, folder):
                failed += not ok
                print(f"{'PASS' if ok else 'FAIL'} {name}: {what}: {detail}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
