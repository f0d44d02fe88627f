"""Holds the tokenizer against the `tokenizers` package: ids, decoded text and streams, equal or not.

    python tokenizers_compare.py --build build [--only TEXT] [--megabytes 2] [--random 200] [--speed]

Tokenizers of every kind are trained here (tokenizer_kinds.py) and applied to text in 40 scripts, emoji, marks, control
characters, broken UTF-8, long runs, special tokens, and to this machine's own sources and prose (tokenizer_corpus.py); then
tokenizers made at random, with merges in any order, to random texts. --speed compares thread time on code and prose and on
mixed scripts, in this run. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

from tokenizers import Tokenizer, decoders  # noqa: E402

import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_kinds  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FAILED = 0xFFFFFFFF
STREAM_LIMIT = 20000    # ids; as in the driver


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, case, what, ok, detail):
        self.passed += bool(ok)
        self.failed += not ok
        print(f"{'PASS' if ok else 'FAIL'} {case}: {what}: {detail}", flush=True)


def build_driver(build, folder):
    binary = folder / "driver"
    rooms = [str(build / "src" / f"libplimsoll_{room}.a") for room in ("data", "io", "base")]
    libraries = ["-lfmt", "-lspdlog", "-lutf8proc", "-lyaml-cpp", "-lxxhash", "-lpthread"]
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", f"-I{HERE.parent.parent / 'src'}",
                    str(HERE / "tokenizer_driver.cpp"), *rooms, *libraries, "-o", str(binary)], check=True)
    return binary


class Driver:
    """Our side: a process per tokenizer."""

    def __init__(self, binary, folder):
        self.binary, self.file = binary, folder / "tokenizer.json"

    def seconds(self, tokenizer, files):
        self.file.write_text(tokenizer)
        done = subprocess.run([self.binary, self.file, "seconds", *files], capture_output=True, text=True, check=True)
        return [float(line) for line in done.stdout.split()]

    def run(self, tokenizer, texts):
        """Per text: (ids or None, decoded, decoded without special tokens, chunks)."""
        self.file.write_text(tokenizer)
        done = subprocess.run([self.binary, self.file], input=b"".join(struct.pack("<I", len(text)) + text for text in texts),
                              capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
        out, at = done.stdout, 0

        def take_u32():
            nonlocal at
            at += 4
            return struct.unpack_from("<I", out, at - 4)[0]

        def take_bytes(size):
            nonlocal at
            at += size
            return out[at - size:at]
        answers = []
        for _ in texts:
            count = take_u32()
            if count == FAILED:
                answers.append((None, b"", b"", b""))
                continue
            ids = list(struct.unpack(f"<{count}i", take_bytes(4 * count)))
            answers.append((ids, *(take_bytes(take_u32()) for _ in range(3))))
        return answers


def encode(tokenizer, text):
    try:
        return tokenizer.encode(text).ids
    except Exception:  # the package raises plain Exception for a missing unknown token
        return None


def chunks(tokenizer, ids):
    stream, out = decoders.DecodeStream(skip_special_tokens=False), []
    for token in ids if len(ids) < STREAM_LIMIT else []:
        try:
            out.append(stream.step(tokenizer, token) or "")
        except Exception:  # bytes that spoil the text before them are an error there, U+FFFD here
            return None
    return b"".join(chunk.encode() + b"\x01" for chunk in out)


def compare(name, source, texts, driver, checks, streams=True):
    """`texts`: (label, bytes)."""
    tokenizer = Tokenizer.from_str(source)
    wrong = dict(ids=[], decoded=[], streamed=[])
    tokens = size = 0
    for (label, data), (ids, decoded, skipped, streamed) in zip(texts, driver.run(source, [data for _, data in texts])):
        reference = encode(tokenizer, data.decode(errors="replace"))
        size += len(data)
        if ids != reference:
            wrong["ids"].append(label)
            continue
        if ids is None:
            continue
        tokens += len(ids)
        if (tokenizer.decode(ids, skip_special_tokens=False).encode(), tokenizer.decode(ids).encode()) != (decoded, skipped):
            wrong["decoded"].append(label)
        if streams and len(ids) < 5000 and chunks(tokenizer, ids) not in (None, streamed):
            wrong["streamed"].append(label)
    for what, labels in wrong.items():
        if what == "ids" or tokenizer.decoder or labels:
            detail = f"{len(labels)} of {len(texts)} differ: {labels[:5]}" if labels else f"{len(texts)} texts, {size / 1e6:.1f} MB, {tokens} ids"
            checks.check(name, what, not labels, detail)
    return tokens


def all_texts(megabytes):
    texts = [(f"script {name}", text.encode()) for name, text in corpus.scripts().items()] + list(corpus.odd().items())
    texts += [(f"special {i}", text.encode()) for i, text in enumerate(tokenizer_kinds.ODD_TEXTS)]
    for kind, files in (("code", corpus.code(megabytes * 5e5)), ("prose", corpus.prose(megabytes * 5e5))):
        texts += [(f"{kind} {i}", text.encode()) for i, text in enumerate(files)]
    return texts


def random_tokenizer(rng):
    """A tokenizer over a few characters whose merges have no reason, and the characters and tokens to write texts with."""
    alphabet = rng.choice(["ab", "abc ", "ab\u2581", "a\u00e9\u4f60", "abcd efg", "a\u2581 \u00e9\U0001F600"])
    unknown = rng.choice([None, "<unk>", "a", "absent"])
    vocab = [c for c in alphabet if rng.random() < 0.85] or [alphabet[0]]
    if unknown not in (None, "absent", *vocab):
        vocab.append(unknown)
    if byte_fallback := rng.random() < 0.5:
        vocab += [f"<0x{byte:02X}>" for byte in range(256) if rng.random() < 0.98]
    merges = []
    for _ in range(rng.randint(0, 60)):
        sides = [rng.choice(vocab if rng.random() < 0.3 else [token for token in vocab if not token.startswith("<0x")]) for _ in "ab"]
        if len("".join(sides)) <= 40:
            merges.append(sides)
            vocab += ["".join(sides)] if "".join(sides) not in vocab else []
    if rng.random() < 0.5:
        rng.shuffle(merges)
    ids = rng.sample(range(len(vocab)), len(vocab))
    meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": rng.choice(["first", "always", "never"]), "split": rng.random() < 0.5}
    split = {"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": False}
    llama = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    model = dict(type="BPE", dropout=None, unk_token=unknown, continuing_subword_prefix=None, end_of_word_suffix=None,
                 fuse_unk=rng.random() < 0.5, byte_fallback=byte_fallback, ignore_merges=rng.random() < 0.4,
                 vocab=dict(zip(vocab, ids)), merges=merges)
    document = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=rng.choice([None, llama]),
                    pre_tokenizer=rng.choice([None, meta, split]), post_processor=None, decoder=None, model=model)
    return json.dumps(document), alphabet, vocab


def compare_random(count, driver, checks):
    wrong, texts_seen = [], 0
    for seed in range(count):
        rng = random.Random(seed)
        source, alphabet, vocab = random_tokenizer(rng)
        texts = ["".join(rng.choices(alphabet, k=rng.choice([1, 3, 10, 30, 50, 100, 400]))) for _ in range(30)]
        texts += ["".join(rng.choices(vocab, k=rng.choice([3, 20, 60]))) for _ in range(10)]
        tokenizer = Tokenizer.from_str(source)
        answers = driver.run(source, [text.encode() for text in texts])
        wrong += [seed for text, answer in zip(texts, answers) if encode(tokenizer, text) != answer[0]]
        texts_seen += len(texts)
    checks.check("random tokenizers", "ids", not wrong, f"seeds that differ: {sorted(set(wrong))[:10]}" if wrong else f"{count} tokenizers, {texts_seen} texts")


def compare_speed(made, driver, folder, checks):
    """Thread seconds of both, the package encoding the files one by one so that it keeps to one thread."""
    sets = {"code and prose": corpus.code(3e6) + corpus.prose(3e6), "mixed scripts": list(corpus.scripts(20000).values())}
    for what, texts in sets.items():
        text = "".join(texts)
        file = folder / "speed.txt"
        file.write_text(text)
        size = file.stat().st_size / 1e6
        for name in list(made)[:6]:
            tokenizer = Tokenizer.from_str(made[name])
            ours = driver.seconds(made[name], [str(file)])[0]
            start = time.thread_time()
            for part in texts:
                tokenizer.encode(part, add_special_tokens=False)
            theirs = time.thread_time() - start
            checks.check(name, f"speed on {what}", ours < theirs, f"{size / ours:.1f} MB/s, the package {size / theirs:.2f} MB/s, {theirs / ours:.1f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build folder whose libraries are tested")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--megabytes", type=float, default=2, help="of code and prose for each kind")
    parser.add_argument("--random", type=int, default=200, help="tokenizers made at random")
    parser.add_argument("--vocab", type=int, default=6000)
    parser.add_argument("--speed", action="store_true", help="compare speeds too")
    args = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        driver = Driver(build_driver(pathlib.Path(args.build), folder), folder)
        made = tokenizer_kinds.kinds(corpus.code(1.5e6) + corpus.prose(1.5e6) + list(corpus.scripts(6000).values()), args.vocab)
        made = {name: source for name, source in made.items() if args.only in name}
        texts = all_texts(args.megabytes)
        for name, source in made.items():
            try:
                compare(name, source, texts, driver, checks)
            except RuntimeError as failure:
                checks.check(name, "ran", False, str(failure))
        compare_random(args.random, driver, checks)
        if args.speed:
            compare_speed(made, driver, folder, checks)
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not made else 0


if __name__ == "__main__":
    sys.exit(main())
