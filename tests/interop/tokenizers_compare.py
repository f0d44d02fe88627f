"""Holds the tokenizer against the `tokenizers` package: ids, where tokens lie, decoded text and streams, training, equal or not.

    python tokenizers_compare.py --build build [--only TEXT] [--full] [--speed]

Tokenizers of every kind are trained here (tokenizer_kinds.py) and applied to text in 40 scripts, emoji, marks, control
characters, broken UTF-8, long runs, special tokens, and to this machine's own sources and prose (tokenizer_corpus.py), whole and
in pieces cut where it is safe; BERT's rules to every code point; pairs with their types, cut to a number of tokens; then tokenizers made at random, with merges in any order, to random texts; then `plimsoll data
tokenizer` is held against the package's trainer. --speed compares thread time on code and prose and on mixed scripts, in this
run. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402

from checks import Checks  # noqa: E402
from driver import build_driver  # noqa: E402
import tokenizer_corpus as corpus  # noqa: E402
import tokenizer_kinds  # noqa: E402
import tokenizer_training  # noqa: E402
import unigram_compare  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
FAILED = 0xFFFFFFFF
STREAM_LIMIT = 2000    # ids; as in the driver
NUM_PUBLIC_KINDS = 5   # the first ones
PUBLIC_UNIGRAMS = ("Unigram, XLM-R", "Unigram, XLM-R of transformers 4", "Unigram, T5", "Unigram, ALBERT")


class Driver:
    """Our side: a process per tokenizer."""

    def __init__(self, binary, folder):
        self.binary, self.file = binary, folder / "tokenizer.json"

    def seconds(self, tokenizer, files):
        self.file.write_text(tokenizer)
        done = subprocess.run([self.binary, self.file, "seconds", *files], capture_output=True, text=True, check=True)
        return [float(line) for line in done.stdout.split()]

    def run(self, tokenizer, texts):
        """Per text: (ids or None, ends, whether in pieces it has the same ids, decoded, decoded without special tokens, chunks, begins)."""
        self.file.write_text(tokenizer)
        return self.answers(self.file, texts)

    def answers(self, path, texts):
        """The same by the files that lie at `path`."""
        done = subprocess.run([self.binary, path], input=b"".join(struct.pack("<I", len(text)) + text for text in texts),
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
                answers.append((None, [], 1, b"", b"", b"", []))
                continue
            ids = list(struct.unpack(f"<{count}i", take_bytes(4 * count)))
            ends = list(struct.unpack(f"<{count}I", take_bytes(4 * count)))
            answer = (ids, ends, take_u32(), *(take_bytes(take_u32()) for _ in range(3)))
            answers.append((*answer, list(struct.unpack(f"<{count}I", take_bytes(4 * count)))))
        return answers

    def rows(self, tokenizer, rows):
        """Of (most tokens, text, pair or None): (ids, type ids), or None."""
        self.file.write_text(tokenizer)
        packed = [struct.pack("<I", most) + b"".join(struct.pack("<I", FAILED) if text is None else struct.pack("<I", len(text.encode())) + text.encode()
                                                     for text in texts) for most, *texts in rows]
        done = subprocess.run([self.binary, self.file, "rows"], input=b"".join(packed), capture_output=True, check=True)
        numbers, at, answers = struct.unpack(f"<{len(done.stdout) // 4}I", done.stdout), 0, []
        for _ in rows:
            count, at = numbers[at], at + 1
            if count == FAILED:
                answers.append(None)
                continue
            answers.append((list(numbers[at:at + count]), list(numbers[at + count:at + 2 * count])))
            at += 2 * count
        return answers


def encode(tokenizer, text):
    try:
        return tokenizer.encode(text)
    except Exception:  # the package raises plain Exception for a missing unknown token
        return None


def ids_of(encoding):
    return None if encoding is None else encoding.ids


def ends_comparer(source):
    """Whether ends count: not where a normalization form changes the text or characters vanish; the package counts otherwise there."""
    parts = json.loads(source)
    form = re.search('"NFK?[CD]"', json.dumps(parts["normalizer"]))
    words = json.dumps(parts["pre_tokenizer"])
    vanish = "merges" in parts["model"] and not parts["model"].get("unk_token") and not parts["model"].get("byte_fallback") and "ByteLevel" not in words
    return lambda tokenizer, text: not vanish and not (form and tokenizer.normalizer.normalize_str(text) != text)


def ends_of(encoding, text):
    """The byte that each token ends at, by the package's offsets; what the post-processor adds stands at an end of the text."""
    bytes_to = range(len(text) + 1) if text.isascii() else list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    seen, ends = False, []
    for (_, end), special in zip(encoding.offsets, encoding.special_tokens_mask):
        seen = seen or not special
        ends.append(bytes_to[end if not special or end else len(text) if seen else 0])
    return list(itertools.accumulate(ends, max))  # a token of spaces may lie within what the one before has stripped


def begins_of(encoding, text):
    """The byte that each token begins at, by the package's offsets; nothing of special tokens, which stand nowhere in the text."""
    bytes_to = range(len(text) + 1) if text.isascii() else list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    return [None if special else bytes_to[begin] for (begin, _), special in zip(encoding.offsets, encoding.special_tokens_mask)]


def joins_the_one_before(c):
    return unicodedata.category(c)[0] == "M" or c in "\u200c\u200d" or 0x1160 <= ord(c) < 0x1200 or 0xD7B0 <= ord(c) < 0xD800 or 0x1F3FB <= ord(c) < 0x1F400


def charsmap_spans_differ(tokenizer, begins, ends, reference, text):
    """Of a charsmap or replaced blanks, where a span here has all characters that a token was made from: in the package a character that took
    up marks has its base alone, and of a run of blanks or quotes that became one the last counts. Characters that vanish shift its offsets."""
    if tokenizer.normalizer and any(not tokenizer.normalizer.normalize_str(c) for c in set(text)):
        return False
    bytes_to = list(itertools.accumulate((len(character.encode()) for character in text), initial=0))
    place = {byte: i for i, byte in enumerate(bytes_to)}
    their_ends = itertools.accumulate((end for _, end in reference.offsets), max)  # as here
    tokens = zip(begins, ends, reference.offsets, their_ends, reference.special_tokens_mask, reference.tokens)
    for begin, end, (their_begin, _), their_end, special, token in tokens:
        if special:
            continue
        begin, end = place[begin], place[end]
        if re.fullmatch("<0x[0-9A-F]{2}>", token) and end <= their_end and not text[begin:their_begin].strip():
            continue  # a run of unknown characters as bytes: here each has those of its own character
        if begin > their_begin or end < their_end or text[begin:their_begin].strip(" `'") or not all(map(joins_the_one_before, text[their_end:end])):
            return True
    return False


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
    tokenizer, ends_compare = Tokenizer.from_str(source), ends_comparer(source)
    wrong = dict(ids=[], begins=[], ends=[], pieces=[], decoded=[], streamed=[])
    has_scores = isinstance(json.loads(source)["model"]["vocab"], list)
    tokens = size = 0
    for (label, data), (ids, ends, joined, decoded, skipped, streamed, begins) in zip(texts, driver.run(source, [data for _, data in texts])):
        text = data.decode(errors="replace")
        reference = encode(tokenizer, text)
        size += len(data)
        if ids != ids_of(reference):
            wrong["ids"].append(label)
            continue
        if ids is None:
            continue
        tokens += len(ids)
        tolerant = has_scores and ends_compare(tokenizer, text)
        if tolerant and data == text.encode() and charsmap_spans_differ(tokenizer, begins, ends, reference, text):
            wrong["ends"].append(label)
        elif not tolerant and data == text.encode() and ends != (ends_of(reference, text) if ends_compare(tokenizer, text) and not all(reference.special_tokens_mask) else sorted(ends)):
            wrong["ends"].append(label)
        if not tolerant and data == text.encode() and ends_compare(tokenizer, text):
            theirs = begins_of(reference, text)
            if [begin if other is not None else None for begin, other in zip(begins, theirs)] != theirs:
                wrong["begins"].append(label)
        if not joined:
            wrong["pieces"].append(label)
        if (tokenizer.decode(ids, skip_special_tokens=False).encode(), tokenizer.decode(ids).encode()) != (decoded, skipped):
            wrong["decoded"].append(label)
        if streams and len(ids) < STREAM_LIMIT and chunks(tokenizer, ids) not in (None, streamed):
            wrong["streamed"].append(label)
    for what, labels in wrong.items():
        if what in ("ids", "begins", "ends", "pieces") or tokenizer.decoder or labels:
            detail = f"{len(labels)} of {len(texts)} differ: {labels[:5]}" if labels else f"{len(texts)} texts, {size / 1e6:.1f} MB, {tokens} ids"
            checks.check(name, what, not labels, detail)
    return tokens


def odd_texts(characters):
    texts = [(f"script {name}", text.encode()) for name, text in corpus.scripts(characters).items()] + list(corpus.odd().items())
    return texts + [(f"special {i}", text.encode()) for i, text in enumerate(tokenizer_kinds.ODD_TEXTS)]


def plain_texts(megabytes):
    return [(f"{kind} {i}", text.encode()) for kind, files in (("code", corpus.code(megabytes * 5e5)), ("prose", corpus.prose(megabytes * 5e5)))
            for i, text in enumerate(files)]


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
        references = [encode(tokenizer, text) for text in texts]
        wrong += [seed for reference, answer in zip(references, answers) if ids_of(reference) != answer[0] or not answer[2]]
        texts_seen += len(texts)
    checks.check("random tokenizers", "ids", not wrong, f"seeds that differ: {sorted(set(wrong))[:10]}" if wrong else f"{count} tokenizers, {texts_seen} texts")


def every_character(points, **rules):
    """A WordPiece tokenizer that shows what became of each character: it has a token for all of them, at a word's start and inside."""
    vocab = {token: i for i, token in enumerate(["[UNK]", *map(chr, points), *("##" + chr(c) for c in points)])}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(**rules), pre_tokenizers.BertPreTokenizer()
    return tokenizer


def compare_code_points(driver, checks, full):
    """BERT's rules on every code point (of the planes that have letters, one in seven unless full): alone, between letters, beside marks."""
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and (full or c < 0x3100 or (c < 0x32000 and c % 7 == 0) or 0xA000 <= c < 0xAC00)]
    forms = {"alone": "{} ", "between letters": "a{}b ", "before marks": "x{}\u0301\u0316 ", "behind a mark": "e\u0323{} ", "among marks that stay": "a\u302e{}\U0001D165 ",
             "doubled": "{0}{0} "}
    for name, rules in {"all rules": {}, "cased": dict(lowercase=False), "accents kept": dict(strip_accents=False), "accents of cased": dict(strip_accents=True, lowercase=False),
                        "lower case alone": dict(clean_text=False, handle_chinese_chars=False, strip_accents=False)}.items():
        tokenizer, wrong, seen = every_character(points, **rules), [], 0
        texts = [(what, "".join(form.format(chr(c)) for c in points[i:i + 50000])) for what, form in forms.items() for i in range(0, len(points), 50000)]
        for (what, text), answer in zip(texts, driver.run(tokenizer.to_str(), [text.encode() for _, text in texts])):
            reference = tokenizer.encode(text)
            # Marks that stay and change places have the spans of each other in the package.
            ends = ends_of(reference, text) if what in ("alone", "between letters", "doubled") else answer[1]
            if (reference.ids, ends) != answer[:2] or not answer[2]:
                wrong.append(what)
            seen += len(answer[0])
        checks.check("code points", f"BERT, {name}", not wrong, wrong or f"{len(points)} code points in {len(forms)} places, {seen} ids")


def compare_rows(made, driver, checks, count):
    """Pairs and single texts with their types, cut to a number of tokens."""
    parts = "the ship can't float 12345 caf\u00e9 \u4f60\u597d unaffable <|end|> x,y ... a".split(" ")
    for name, source in made.items():
        rng, tokenizer, rows = random.Random(name), Tokenizer.from_str(source), []
        for _ in range(count):
            texts = [" ".join(rng.choices(parts, k=rng.randint(0, 12))) for _ in "ab"]
            rows.append((rng.choice([3, 4, 5, 8, 11, 20, 300]), texts[0], texts[1] if rng.random() < 0.7 else None))
        wrong, cut = [], 0
        for (most, text, pair), answer in zip(rows, driver.rows(source, rows)):
            special = tokenizer.num_special_tokens_to_add(pair is not None)
            tokenizer.no_truncation()
            whole = len(tokenizer.encode(text, pair).ids)
            if most < special:
                wrong += [(most, text, pair)] if answer is not None else []
                continue
            try:
                tokenizer.enable_truncation(most, strategy="longest_first")
                reference = tokenizer.encode(text, pair)
            except Exception:  # no place for two texts, or no unknown token
                continue
            cut += len(reference.ids) < whole
            if answer != (reference.ids, reference.type_ids):
                wrong.append((most, text, pair))
        checks.check(name, "rows", not wrong, wrong[:2] or f"{count} rows, {cut} of them cut")


def training_cases(texts):
    for name in tokenizer_training.PRE_TOKENIZERS:
        yield f"words of {name}", texts, dict(pre_tokenizer=name, vocab_size=3000, min_frequency=2, special_tokens=["<|endoftext|>", "<pad>"])
    yield "every pair", texts[-12:], dict(pre_tokenizer="gpt2", vocab_size=10**6, min_frequency=0, special_tokens=[])
    for seed in range(8):
        rng = random.Random(seed)
        texts = [" ".join("".join(rng.choices(rng.choice(["a", "aab", "  ab", "abc"]), k=rng.choice([3, 8, 60]))) for _ in range(30)) for _ in range(3)]
        settings = dict(pre_tokenizer="gpt2", vocab_size=rng.choice([290, 600, 4000]), min_frequency=rng.choice([0, 1, 2, 5]), special_tokens=["a"] * (seed % 2))
        yield f"few letters {seed}", texts, settings


def compare_training(binary, texts, folder, checks):
    """`plimsoll data tokenizer` and the package's BpeTrainer: vocabulary and merges, on one thread and on three; what comes out is opened there."""
    for name, own_texts, settings in training_cases(texts):
        files = []
        for text in own_texts:
            files.append(folder / f"{len(files):03d}.txt")
            files[-1].write_text(text, newline="")
        made = []
        for threads in (1, 3):
            command = [binary, "data", "tokenizer", "--vocab-size", str(settings["vocab_size"]), "--min-frequency", str(settings["min_frequency"]),
                       "--pre-tokenizer", settings["pre_tokenizer"], "--threads", str(threads), "--output", str(folder / "trained"), "--json"]
            for token in settings["special_tokens"]:
                command += ["--special-token", token]
            done = subprocess.run([*command, "--input", *map(str, files)], capture_output=True, text=True)
            made.append((folder / "trained" / "tokenizer.json").read_text() if done.returncode == 0 else done.stderr)
        reference = tokenizer_training.train(own_texts, **settings)
        ok = done.returncode == 0 and made[0] == made[1]
        detail = "differs by the number of threads" if done.returncode == 0 else made[1]
        if ok:
            ours, theirs = json.loads(made[0])["model"], json.loads(reference.to_str())["model"]
            ok = (ours["vocab"], ours["merges"]) == (theirs["vocab"], theirs["merges"])
            detail = f"{len(ours['vocab'])} tokens, {len(theirs['vocab'])} of the package's, {len(ours['merges'])} merges"
            opened = Tokenizer.from_str(made[0])
            ok = ok and all(opened.encode(text).ids == reference.encode(text).ids for text in own_texts[:20])
        checks.check("training", name, ok, detail)
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return
    opened = AutoTokenizer.from_pretrained(str(folder / "trained"))
    checks.check("training", "AutoTokenizer opens it", opened("a word")["input_ids"] == Tokenizer.from_file(str(folder / "trained" / "tokenizer.json")).encode("a word").ids, type(opened).__name__)


def compare_speed(made, driver, folder, checks):
    """Thread seconds of both, the package encoding the files one by one so that it keeps to one thread."""
    sets = {"code and prose": corpus.code(3e6) + corpus.prose(3e6), "mixed scripts": list(corpus.scripts(20000).values())}
    for what, texts in sets.items():
        text = "".join(texts)
        file = folder / "speed.txt"
        file.write_text(text)
        size = file.stat().st_size / 1e6
        for name in [*list(made)[:6], *(name for name in ("BERT", "BERT, cased") if name in list(made)[6:])]:
            tokenizer = Tokenizer.from_str(made[name])
            ours = driver.seconds(made[name], [str(file)])[0]
            start = time.thread_time()
            for part in texts:
                tokenizer.encode(part, add_special_tokens=False)
            theirs = time.thread_time() - start
            checks.check(name, f"speed on {what}", ours < theirs, f"{size / ours:.1f} MB/s, the package {size / theirs:.2f} MB/s, {theirs / ours:.1f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build folder whose libraries and binary are tested")
    parser.add_argument("--only", default="", help="kinds whose name contains this; no training")
    parser.add_argument("--full", action="store_true", help="minutes: larger vocabularies, all texts with all kinds, more random tokenizers")
    parser.add_argument("--megabytes", type=float, help="of code and prose for each kind (0.3; with --full 2)")
    parser.add_argument("--random", type=int, help="tokenizers made at random (40; with --full 300)")
    parser.add_argument("--speed", action="store_true", help="compare speeds too")
    args = parser.parse_args()
    megabytes = (2 if args.full else 0.3) if args.megabytes is None else args.megabytes
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        driver = Driver(build_driver(pathlib.Path(args.build), "tokenizer_driver.cpp", folder, ("tokenizers", "io", "base")), folder)
        size = 1.5e6 if args.full else 2e5
        training = corpus.code(size) + corpus.prose(size) + list(corpus.scripts(6000 if args.full else 1000).values())
        made = tokenizer_kinds.kinds(training, 6000 if args.full else 3000)
        made = {name: source for name, source in made.items() if args.only in name}
        texts, few = odd_texts(2000) + plain_texts(megabytes), odd_texts(300)
        for i, (name, source) in enumerate(made.items()):
            try:
                public = i < NUM_PUBLIC_KINDS or name in PUBLIC_UNIGRAMS
                compare(name, source, texts if args.full or public else few, driver, checks)
            except RuntimeError as failure:
                checks.check(name, "ran", False, str(failure))
        if not args.only or "BERT" in args.only:
            compare_code_points(driver, checks, args.full)
        if not args.only or "Unigram" in args.only:
            unigram_compare.compare_code_points(driver, checks, args.full, charsmap_spans_differ)
            unigram_compare.compare_random((600 if args.full else 80) if args.random is None else args.random, driver, checks, charsmap_spans_differ)
        compare_rows({name: source for name, source in made.items() if args.full or "BERT" in name or name in ("GPT-2", "Llama-2", "Mistral")}, driver, checks, 400)
        compare_random((300 if args.full else 40) if args.random is None else args.random, driver, checks)
        if not args.only:
            compare_training(pathlib.Path(args.build) / "plimsoll", training, folder, checks)
        if args.speed:
            compare_speed(made, driver, folder, checks)
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not made else 0


if __name__ == "__main__":
    sys.exit(main())
