"""Unigram tokenizers made at random and charsmaps on every code point, for tokenizers_compare.py."""
import random

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

import unigram_kinds

META = unigram_kinds.META
# Characters that make clusters with each other, by what they are to a cluster.
CLUSTERING = ["a", "e", " ", "\r", "\n", "\u0301", "\u0316", "\u200d", "\u0600", "\u0903", "\u0915", "\u094d", "\u093c", "\u1100", "\u1161", "\u11a8",
              "\uac00", "\uac01", "\U0001F1E9", "\U0001F1EA", "\u2764", "\ufe0f", "\U0001F468", "\U0001F3FD", "\u4f60", "\xad", "\u0e33", "\u00e9"]


def random_charsmap(rng):
    keys = {"".join(rng.choices(CLUSTERING, k=rng.choice([1, 1, 1, 2, 2, 3]))) for _ in range(rng.randint(1, 12))}
    return unigram_kinds.double_array({key: "".join(rng.choices(CLUSTERING + ["bc", "x"], k=rng.choice([0, 1, 1, 2, 4]))) for key in sorted(keys)})


def random_tokenizer(rng):
    """(document, characters to write texts with): scores with ties, pieces twice, pieces that only unknown runs spell."""
    alphabet = rng.choice([list("ab"), list("abc "), list("ab" + META), list("a\u00e9\u4f60 "), CLUSTERING, list("abcd efg")])
    scores = rng.choice([[-1.0], [-1.0, -2.0, -3.0, -1.5], [-0.1, -0.2, -0.3, -0.7], [i / 10 for i in range(-30, 1)], [25.0, 30.5, 21.25],
                         [-rng.random() * 12 for _ in range(40)], [-1e300, -1.0, 1e300]])
    vocab = ["<unk>"] if rng.random() < 0.8 else []
    vocab += [c for c in alphabet if rng.random() < 0.8] + ["".join(rng.choices(alphabet, k=rng.choice([1, 2, 2, 3, 5]))) for _ in range(rng.randint(0, 40))]
    byte_fallback = rng.random() < 0.4
    if byte_fallback:
        vocab += [f"<0x{byte:02X}>" for byte in range(256) if rng.random() < 0.999]
    vocab += rng.sample(vocab, min(len(vocab), rng.choice([0, 0, 3])))
    rng.shuffle(vocab)
    unk_id = rng.randrange(len(vocab)) if vocab and rng.random() < 0.85 else None
    tokenizer = Tokenizer(models.Unigram([(piece, rng.choice(scores)) for piece in vocab], unk_id, byte_fallback))
    blanks = [normalizers.Replace(Regex(" {2,}"), rng.choice([META, " "]))] + [normalizers.Strip(left=rng.random() < 0.3, right=True)] * (rng.random() < 0.5)
    chosen = rng.choice([[], [normalizers.Precompiled(random_charsmap(rng))], [normalizers.Precompiled(random_charsmap(rng)), *blanks], blanks,
                         [normalizers.NFKD(), normalizers.Precompiled(random_charsmap(rng)), normalizers.Lowercase()]])
    if chosen:
        tokenizer.normalizer = chosen[0] if len(chosen) == 1 else normalizers.Sequence(chosen)
    meta = pre_tokenizers.Metaspace(META, rng.choice(["first", "always", "never"]), split=rng.random() < 0.6)
    stages = rng.choice([None, meta, pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), meta])])
    if stages:
        tokenizer.pre_tokenizer = stages
    tokenizer = Tokenizer.from_str(tokenizer.to_str())  # which reads scores less exactly than they were
    return tokenizer, alphabet + [piece for piece in vocab if rng.random() < 0.2]


def compare_random(count, driver, checks, spans_differ):
    wrong, texts_seen, spans_seen = [], 0, 0
    for seed in range(count):
        rng = random.Random(f"unigram {seed}")
        tokenizer, parts = random_tokenizer(rng)
        texts = ["".join(rng.choices(parts, k=rng.choice([1, 2, 3, 10, 30, 100, 400]))) for _ in range(60)]
        answers = driver.run(tokenizer.to_str(), [text.encode() for text in texts])
        for text, (ids, ends, joined, _, _, _, begins) in zip(texts, answers):
            try:
                reference = tokenizer.encode(text)
            except Exception:  # no unknown piece
                reference = None
            texts_seen += 1
            if ids != (None if reference is None else reference.ids) or not joined:
                wrong.append(seed)
            elif ids is not None and not any(kind in tokenizer.to_str() for kind in ("NFKD", "Precompiled")):
                spans_seen += 1
                wrong += [f"{seed}, spans"] if spans_differ(tokenizer, begins, ends, reference, text) else []
    checks.check("random Unigram", "ids", not wrong, f"seeds that differ: {sorted(set(map(str, wrong)))[:10]}" if wrong else
                 f"{count} tokenizers, {texts_seen} texts, spans of {spans_seen}")


def compare_code_points(driver, checks, full, spans_differ):
    """Each charsmap on every code point, alone, beside marks, behind what prepends, doubled."""
    if not unigram_kinds.have_sentencepiece():
        return
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    forms = {"alone": "{} ", "before a mark": "{}\u0301 ", "behind a letter": "a{}b", "behind a mark": "e\u0323{} ", "behind what prepends": "\u0600{} ", "doubled": "{0}{0} "}
    vocab = [("<unk>", 0.0), *((chr(c), -1.0) for c in points)]
    for rule in unigram_kinds.RULES if full else unigram_kinds.RULES[:1]:
        tokenizer = Tokenizer(models.Unigram(vocab, 0, False))
        tokenizer.normalizer = normalizers.Precompiled(unigram_kinds.charsmap(rule))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(META, "never")
        removed, wrong, seen = {c for c in points if not tokenizer.normalizer.normalize_str(chr(c))}, [], 0
        stays = [c for c in points if c not in removed]
        texts = [(what, "".join(form.format(chr(c)) for c in some[i:i + 20000])) for what, form in forms.items() for some in (stays, sorted(removed))
                 for i in range(0, len(some), 20000)]
        for (what, text), (ids, ends, joined, _, _, _, begins) in zip(texts, driver.run(tokenizer.to_str(), [text.encode() for _, text in texts])):
            reference = tokenizer.encode(text)
            if reference.ids != ids or not joined:
                wrong.append(what)
            elif spans_differ(tokenizer, begins, ends, reference, text):
                wrong.append(f"spans {what}")
            seen += len(ids)
        checks.check("code points", f"charsmap {rule}", not wrong, wrong[:6] or f"{len(points)} code points in {len(forms)} places, {seen} ids with spans")
