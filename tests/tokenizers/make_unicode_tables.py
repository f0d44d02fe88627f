"""Writes unicode_tables.cpp and bert_tables.cpp of src/tokenizers: what the `tokenizers` package takes each code point for.

    python make_unicode_tables.py ../../src/tokenizers

The package mixes Unicode versions (its regular expressions, its digits and its normalizers each bring their own), so
the properties are asked of the package itself, code point by code point, and compared with utf8proc, which does the
normalization here. Needs tokenizers and libutf8proc.so.2. To be run again when the package's version changes.
"""
import ctypes
import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
# As in unicode.h.
SPACE, UPPER, LOWER, LETTER, MARK, NUMBER = range(1, 7)
COMPOSES, WORD, NEWER, ACCENT, NUMERIC = 0x08, 0x10, 0x20, 0x40, 0x80
STABLE, COMPAT, COMPOSE, DECOMPOSE = 2, 4, 8, 16


def matching(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for i in range(0, len(POINTS), 20000):
        for piece, _ in split.pre_tokenize_str("".join(map(chr, POINTS[i:i + 20000]))):
            found.update(map(ord, piece))
    return found


def words():
    """What an added token with single_word may not touch."""
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.add_tokens([AddedToken("XY", single_word=True, normalized=False)])
    return {c for c in POINTS if 1 not in tokenizer.encode("XY" + chr(c)).ids}


def numerics():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {ord(piece) for i in range(0, len(POINTS), 20000)
            for piece, _ in digits.pre_tokenize_str("".join("aa" + chr(c) for c in POINTS[i:i + 20000]))
            if len(piece) == 1} - {ord("a")}


class Utf8proc:
    def __init__(self):
        self.library = ctypes.CDLL("libutf8proc.so.2")
        self.library.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
        self.library.utf8proc_map.restype = ctypes.c_ssize_t
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]

    def map(self, text, options):
        data, out = text.encode(), ctypes.c_void_p()
        size = self.library.utf8proc_map(data, len(data), ctypes.byref(out), STABLE | options)
        result = ctypes.string_at(out, size).decode()
        self.free(out)
        return result


def newer_than_normalizers():
    """Code points that utf8proc would change, reorder or compose and the package's older tables would not."""
    ours, newer = Utf8proc(), set()
    kinds = [(normalizers.NFC(), COMPOSE), (normalizers.NFD(), DECOMPOSE), (normalizers.NFKC(), COMPOSE | COMPAT),
             (normalizers.NFKD(), DECOMPOSE | COMPAT)]
    for c in POINTS:
        texts = [chr(c), "a" + chr(c) + "\u0316\u0301\u0345\u0334", "a\u0345\u0301\u0316\u0334" + chr(c)]
        if any(theirs.normalize_str(text) != ours.map(text, options) for theirs, options in kinds for text in texts):
            newer.add(c)
        pair = ours.map(chr(c), DECOMPOSE)
        if len(pair) == 2 and kinds[0][0].normalize_str(pair) != ours.map(pair, COMPOSE):
            newer.add(ord(pair[1]))
    return newer


def composing(newer):
    """Code points that NFC may change or join to the one before; all others are boundaries of it."""
    ours, points = Utf8proc(), set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # vowels and finals of Hangul
    for c in POINTS:
        if unicodedata.combining(chr(c)) or ours.map(chr(c), COMPOSE) != chr(c):
            points.add(c)
        points.update(map(ord, ours.map(chr(c), DECOMPOSE)[1:]))
    return points - newer


def accents():
    strip = normalizers.StripAccents()
    return {c for c in POINTS if strip.normalize_str(chr(c) + "a") == "a"}


def table():
    values = [0] * 0x110000
    for pattern, value in ((r"\s", SPACE), (r"[\p{Lu}\p{Lt}]", UPPER), (r"\p{Ll}", LOWER), (r"[\p{Lm}\p{Lo}]", LETTER),
                           (r"\p{M}", MARK), (r"\p{N}", NUMBER)):
        for c in matching(pattern):
            assert values[c] == 0
            values[c] = value
    newer = newer_than_normalizers()
    for points, flag in ((composing(newer), COMPOSES), (words(), WORD), (newer, NEWER), (accents(), ACCENT), (numerics(), NUMERIC)):
        for c in points:
            values[c] |= flag
    return values


def bert():
    """What BertNormalizer and BertPreTokenizer take each code point for. The bits are those of bert_classes.h."""
    control, space, punctuation, han, mark, decomposes, ordered, upper = (1 << i for i in range(8))
    rules = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    clean, apart, strip, lower = (normalizers.BertNormalizer(**rules | {rule: True}).normalize_str for rule in rules)
    form, words_of = normalizers.NFD().normalize_str, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    marks, values = set(), [0] * 0x110000
    for c in POINTS:
        cleaned, pieces = clean("a" + chr(c) + "b"), [piece for piece, _ in words_of("a" + chr(c) + "b")]
        is_space = pieces == ["a", "b"]
        assert cleaned == ("ab" if cleaned == "ab" else "a b" if is_space else "a" + chr(c) + "b"), hex(c)
        values[c] |= control * (cleaned == "ab") | space * is_space | punctuation * (pieces == ["a", chr(c), "b"])
        values[c] |= han * (apart("a" + chr(c) + "b") == "a " + chr(c) + " b")
        values[c] |= upper * (lower(chr(c)) != chr(c)) | decomposes * (form(chr(c)) != chr(c))
        if strip("a" + chr(c) + "b") == "ab":
            marks.add(c)
            values[c] |= mark
    # Marks that stay and that a normalization form sorts: one of class 1, one of the last class.
    for c in POINTS:
        stay = [part for part in form(chr(c)) if ord(part) not in marks]
        sorted_ones = [part for part in stay if form(part + "\u0334") == "\u0334" + part or form("\u0345" + part) == part + "\u0345"]
        values[c] |= ordered * bool(sorted_ones)
    return values


def write(path, values, header, function, array):
    runs = [(c, values[c]) for c in range(0x110000) if c == 0 or values[c] != values[c - 1]]
    words_of_runs = [f"0x{start << 8 | value:x}" for start, value in runs]
    lines, line = [], ""
    for word in words_of_runs:
        if len(line) + len(word) + 2 > 106:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word + ","
    lines.append(line)
    with open(path, "w") as out:
        out.write(f"// Made by tests/tokenizers/make_unicode_tables.py from tokenizers {tokenizers.__version__}: runs of code points\n"
                  "// with the same properties, each as start << 8 | properties.\n"
                  f'#include "tokenizers/{header}"\n\nnamespace plimsoll::tokenizers {{\n\n// clang-format off\n'
                  f"static constexpr uint32_t {array}[] = {{\n" + "\n".join("    " + text for text in lines) +
                  f"\n}};\n// clang-format on\n\nstd::span<const uint32_t> {function}() {{ return {array}; }}\n\n}}  // namespace plimsoll::tokenizers\n")
    print(path, len(runs), "runs")


def main():
    folder = pathlib.Path(sys.argv[1])
    write(folder / "bert_tables.cpp", bert(), "bert_classes.h", "bert_runs", "kBertRuns")
    write(folder / "unicode_tables.cpp", table(), "unicode.h", "property_runs", "kRuns")


if __name__ == "__main__":
    main()
