"""Texts for comparing tokenizers: made from this machine's own files and from Unicode's blocks, the same every time."""
import gzip
import pathlib
import random
import sysconfig
import unicodedata

SCRIPTS = {
    "Latin": (0x41, 0x24F), "IPA": (0x250, 0x2AF), "Greek": (0x370, 0x3FF), "Cyrillic": (0x400, 0x52F),
    "Armenian": (0x531, 0x58F), "Hebrew": (0x591, 0x5F4), "Arabic": (0x600, 0x6FF), "Syriac": (0x700, 0x74F),
    "Thaana": (0x780, 0x7B1), "NKo": (0x7C0, 0x7FF), "Devanagari": (0x900, 0x97F), "Bengali": (0x980, 0x9FE),
    "Gurmukhi": (0xA01, 0xA76), "Gujarati": (0xA81, 0xAFF), "Tamil": (0xB82, 0xBFA), "Telugu": (0xC00, 0xC7F),
    "Kannada": (0xC80, 0xCF2), "Malayalam": (0xD00, 0xD7F), "Sinhala": (0xD81, 0xDF4), "Thai": (0xE01, 0xE5B),
    "Lao": (0xE81, 0xEDF), "Tibetan": (0xF00, 0xFDA), "Myanmar": (0x1000, 0x109F), "Georgian": (0x10A0, 0x10FF),
    "Ethiopic": (0x1200, 0x139F), "Cherokee": (0x13A0, 0x13FD), "Ogham": (0x1680, 0x169C), "Khmer": (0x1780, 0x17F9),
    "Mongolian": (0x1800, 0x18AA), "Hangul jamo": (0x1100, 0x11FF), "Greek extended": (0x1F00, 0x1FFE),
    "Kana": (0x3041, 0x30FF), "Bopomofo": (0x3105, 0x312F), "Han": (0x4E00, 0x9FFC), "Yi": (0xA000, 0xA4C6),
    "Hangul": (0xAC00, 0xD7A3), "Gothic": (0x10330, 0x1034A), "Deseret": (0x10400, 0x1044F),
    "Cuneiform": (0x12000, 0x12399), "Mathematical": (0x1D400, 0x1D7FF), "Adlam": (0x1E900, 0x1E95F),
    "Han extension B": (0x20000, 0x2A6DD), "Kirat Rai, of Unicode 16": (0x16D40, 0x16D79),
}
EMOJI = ["\U0001F600", "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466", "\U0001F44D\U0001F3FD", "\u2764\ufe0f", "\U0001F1E9\U0001F1EA", "1\ufe0f\u20e3", "\U0001F3F4\U000E0067\U000E0062\U000E007F",
         "\u2602", "\U0001FAE8", "\U0001F926\U0001F3FF\u200d\u2642\ufe0f"]


def script_text(first, last, rng, characters):
    points = [chr(c) for c in range(first, last + 1) if unicodedata.category(chr(c)) not in ("Cs",)]
    out, size = [], 0
    while size < characters:
        word = "".join(rng.choices(points, k=rng.randint(1, 9)))
        out.append(word + rng.choice([" ", " ", " ", ", ", ". ", "\n", "  ", "\t", " 123 ", "\u3000", "'s "]))
        size += len(out[-1])
    return "".join(out)


def scripts(characters=2000):
    rng = random.Random(5)
    return {name: script_text(*block, rng, characters) for name, block in SCRIPTS.items()}


def whitespace_mixes(rng):
    spaces = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", "\x85", "\u200b", "\x0b", "\x1c", " \n", "\n "]
    rest = ["a", "Zo", "\u00e9", "1", "23", "4567", "!", "...", "'s", "'S", "'\u017f", "'re", "'LL", "'", "''", "\u4f60\u597d", "_", "-", "e\u0301", "\u0301", "/", "\u0661", "\u00bd"]
    return "".join(rng.choice(spaces if rng.random() < 0.5 else rest) for _ in range(4000))


def odd():
    """What goes wrong first: (name, text as bytes)."""
    rng = random.Random(9)
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    texts = {
        "empty": "", "one space": " ", "one letter": "a", "newline": "\n", "spaces": " " * 70, "two lines": "a\n\nb\n",
        "emoji": " ".join(EMOJI) + "".join(EMOJI) + "x".join(EMOJI),
        "combining marks": "".join(chr(rng.choice([0x61, 0x65, 0x6F, 0x41, 0x301, 0x308, 0x323, 0x31B, 0x345, 0x1EA1, 0xE9, 0x20])) for _ in range(3000)),
        "marks out of order": "a\u0323\u0301 a\u0301\u0323 \u1e69 s\u0323\u0307 s\u0307\u0323 \u1100\u1161\u11a8 \uac00\u11a8 \u212b \u2126 \uf900 \u0344 \u0958",
        "control characters": "".join(map(chr, range(0, 0xA0))) * 3,
        "contractions": "I'll we've they're don't it's HE'LL WE'VE 'sup o''s '\u017f 'Sx '\u017fx x's's 're're'r 'v 'l 'L' '",
        "digits": "1 12 123 1234 12345 1234567890 \u0661\u0662\u0663 \u00bd\u00b2 a1b2 3.14159 1,000,000 \u2167 \U0001D7D8\U0001D7D9 \U00011DE0\U00016FF4",
        "upper and lower": "helloWorld HTTPServer XMLHttpRequest aB AB Ab \u01c5a \u02b0A \u4f60A\u4f60a O'Brien's DON'T iPhone\u00aa \u00aaB A\u0301b",
        "whitespace": whitespace_mixes(rng),
        "letters": "a" * 5000, "mixed run": "ab" * 3000 + "A" * 700 + "\u00e9" * 900 + "\u4f60" * 900,
        "digit run": "7" * 3000, "space run": " " * 4000 + "x" + "\n" * 3000 + "y" + "\t \n" * 900,
        "punctuation run": "!" * 2000 + "-=" * 900 + "\n/" * 300,
        "nul": "\0a\0\0b", "bom": "\ufefftext\ufeff", "noncharacters": "\ufffe\uffff\U0010ffff\ufdd0",
        "replacement": "\ufffd\ufffd a\ufffd", "meta": "\u2581 \u2581\u2581a \u2581b\u2581", "byte tokens": "<0x41><0x0A> <0xzz> <0xE4><0xBD><0xA0>",
        "all code points": "".join(map(chr, rng.sample(points, 20000))),
        "code points and spaces": " ".join(map(chr, rng.sample(points, 20000))),
        "after letters": "".join("a" + chr(c) for c in rng.sample(range(0x3000), 5000)),
    }
    bytes_of = {name: text.encode() for name, text in texts.items()}
    bytes_of["random bytes"] = rng.randbytes(6000)
    bytes_of["broken UTF-8"] = b"a\xff\xfeb \xe4\xbd \xe4\xbd\xa0\xa0 \xf0\x9f\x98 \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf8\x88 \xe4" + b"\xf0\x9f"
    bytes_of["cut characters"] = b"".join(chr(rng.choice(points)).encode()[:rng.randint(1, 4)] for _ in range(3000))
    return bytes_of


def files(patterns, limit, largest=400_000):
    """About `limit` bytes of this machine's files, as text."""
    out, size = [], 0
    for folder, pattern in patterns:
        for path in sorted(pathlib.Path(folder).rglob(pattern)):
            try:
                data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
            except OSError:
                continue
            out.append(data[:largest].decode(errors="replace"))
            size += len(out[-1])
            if size > limit:
                return out
    return out


def code(limit):
    return files([(sysconfig.get_paths()["stdlib"], "*.py"), ("/usr/include", "*.h*")], limit)


def prose(limit):
    return files([("/usr/share/doc", "copyright"), ("/usr/share/man/man1", "*.gz"), ("/usr/share/perl", "*.pod"), ("/usr/share/doc", "*.gz")], limit)
