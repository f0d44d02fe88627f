"""Writes recorded_training.json: what the `tokenizers` package's BpeTrainer makes of small texts.

    python record_trainer.py

Each case holds the texts, the settings, and the trained tokens by id and merges by rank.
"""
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))
import tokenizer_training  # noqa: E402

TEXTS = ["The line on a ship's hull shows how far she may be loaded. " * 3, "It's the owner's word: they'll load, we've seen 1234 of it.\n\n" * 2,
         "for (int i = 0; i < 10; ++i) {\n        total += values[i];\n}\n" * 2, "caf\u00e9 cafe\u0301 na\u00efve \u4f60\u597d\u4e16\u754c \U0001F44D\U0001F3FD helloWorld " * 3]


def cases():
    for name in tokenizer_training.PRE_TOKENIZERS:
        yield dict(pre_tokenizer=name, texts=TEXTS, vocab_size=330, min_frequency=2, special_tokens=["<|endoftext|>"])
    yield dict(pre_tokenizer="gpt2", texts=TEXTS, vocab_size=5000, min_frequency=3, special_tokens=[])
    yield dict(pre_tokenizer="gpt2", texts=TEXTS, vocab_size=300, min_frequency=0, special_tokens=["the", "a", "<s>"])
    for seed in range(12):   # few letters in long runs: merges that spell the same token, pairs that overlap themselves
        rng = random.Random(seed)
        texts = [" ".join("".join(rng.choices("aab", k=rng.choice([3, 8, 20]))) for _ in range(30)) for _ in range(3)]
        yield dict(pre_tokenizer="gpt2", texts=texts, vocab_size=rng.choice([290, 340, 4000]), min_frequency=rng.choice([0, 1, 2, 3]), special_tokens=[])


def main():
    lines = []
    for case in cases():
        model = json.loads(tokenizer_training.train(**case).to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        lines.append(json.dumps(case | dict(tokens=tokens, merges=[" ".join(merge) for merge in model["merges"]])))
    file = HERE / "recorded_training.json"
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(file.name, file.stat().st_size, len(lines))


if __name__ == "__main__":
    main()
