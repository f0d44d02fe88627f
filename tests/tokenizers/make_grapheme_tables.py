"""Writes grapheme_tables.cpp of src/tokenizers: the classes by which the `tokenizers` package finds grapheme clusters.

    python make_grapheme_tables.py TABLES_RS ../../src/tokenizers

TABLES_RS is src/tables.rs of the crate unicode-segmentation that the package is built with (its Unicode version is that of the
package where no code point below is told apart). The classes are then held against the package itself, as far as its Precompiled
normalizer shows them: pairs of less than six bytes. To be run again when the package's version changes.
"""
import pathlib
import re
import struct
import sys

from tokenizers import normalizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
# As in graphemes.h.
CLASSES = ["Any", "CR", "LF", "Control", "L", "V", "T", "LV", "LVT", "Extend", "ZWJ", "SpacingMark", "Prepend", "InCB_Consonant",
           "Extended_Pictographic", "Regional_Indicator"]
LINKER, INCB_EXTEND = 0x10, 0x20
CHARACTER = r"'\\u\{([0-9a-fA-F]+)\}'"


def classes_of(source):
    classes = dict.fromkeys(POINTS, 0)
    table = re.search(r"const grapheme_cat_table.*?\];", source, re.S).group()
    for first, last, name in re.findall(rf"\({CHARACTER},\s*{CHARACTER},\s*GC_(\w+)\)", table):
        for c in range(int(first, 16), int(last, 16) + 1):
            classes[c] = CLASSES.index(name)
    for first, last in re.findall(rf"\({CHARACTER},\s*{CHARACTER}\)", re.search(r"const InCB_Extend_table.*?\];", source, re.S).group()):
        for c in range(int(first, 16), int(last, 16) + 1):
            classes[c] |= INCB_EXTEND
    for c in re.findall(CHARACTER, re.search(r"fn is_incb_linker.*?\n\}", source, re.S).group()):
        classes[int(c, 16)] = classes[int(c, 16)] & 0xF | LINKER
    for c in range(0x7F):  # the crate's own short cut
        classes[c] = CLASSES.index("Any" if c >= 0x20 else "LF" if c == 10 else "CR" if c == 13 else "Control")
    return classes


def probe():
    """Counts the "#" that a text becomes under a charsmap that makes every character one: one per cluster of less than six bytes."""
    # Bases of nodes: 0x100 the first byte, 0x400 one byte to come, 0x500 two, 0x600 three; a double array may share them.
    units = [0] * 0x800
    value = 0x700
    units[value] = 1 << 31

    def child(base, label, target, leaf=False):
        units[base ^ label] = label | (0x100 if leaf else 0) | (((base ^ label) ^ target) << 10)
    units[0] = 0x100 << 10
    for c in range(1, 0x80):
        child(0x100, c, value, True)
    for low, high, target in ((0xC2, 0xE0, 0x400), (0xE0, 0xF0, 0x500), (0xF0, 0xF5, 0x600)):
        for c in range(low, high):
            child(0x100, c, target)
    for c in range(0x80, 0xC0):
        child(0x400, c, value, True)
        child(0x500, c, 0x400)
        child(0x600, c, 0x500)
    blob = struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + b"#\0"
    normalizer = normalizers.Precompiled(blob)
    return lambda text: len(normalizer.normalize_str(text))


def joins(before, after):
    """Whether two characters at a text's start are one cluster."""
    name = [CLASSES[c & 0xF] for c in (before, after)]
    if name == ["CR", "LF"]:
        return True
    if name[0] in ("CR", "LF", "Control") or name[1] in ("CR", "LF", "Control"):
        return False
    return (name[1] in ("Extend", "ZWJ", "SpacingMark") or name[0] == "Prepend" or name == ["Regional_Indicator"] * 2 or
            (name[0] == "L" and name[1] in ("L", "V", "LV", "LVT")) or (name[0] in ("LV", "V") and name[1] in ("V", "T")) or
            (name[0] in ("LVT", "T") and name[1] == "T"))


def check(classes):
    count, wrong, compared = probe(), [], 0
    partners = [0x61, 0x0A, 0x0D, 0x300, 0x7F, 0xE9]
    for c in POINTS:
        for other in partners:
            for pair in ((c, other), (other, c)):
                text = "".join(map(chr, pair))
                if 0 in pair or len(text.encode()) > 5:
                    continue
                compared += 1
                if (count(text) == 1) != joins(*(classes[one] for one in pair)):
                    wrong.append(pair)
    print(f"{compared} pairs, {len(wrong)} differ", wrong[:20])
    return not wrong


def main():
    source, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    classes = classes_of(source)
    sound = check(classes)
    runs, last = [], None
    syllable = CLASSES.index("LV")
    for c in range(0x110000):
        value = syllable if 0xAC00 <= c <= 0xD7A3 else classes.get(c, 0)  # every 28th is LV, the others are LVT
        if value != last:
            runs.append(c << 8 | value)
            last = value
    lines, line = [], "   "
    for run in runs:
        if len(line) + len(f" 0x{run:x},") > 108:
            lines.append(line)
            line = "   "
        line += f" 0x{run:x},"
    version = re.search(r"UNICODE_VERSION: .*?\((\d+), (\d+), (\d+)\)", source).groups()
    (folder / "grapheme_tables.cpp").write_text(
        "// Made by tests/tokenizers/make_grapheme_tables.py from Unicode " + ".".join(version) + ", as tokenizers 0.23.3 has it: runs of code\n"
        "// points of the same class, each as start << 8 | class; all syllables of Hangul are one run.\n"
        "#include \"tokenizers/graphemes.h\"\n\nnamespace plimsoll::tokenizers {\n\n// clang-format off\nstatic constexpr uint32_t kRuns[] = {\n"
        + "\n".join([*lines, line]) + "\n};\n// clang-format on\n\nstd::span<const uint32_t> grapheme_runs() { return kRuns; }\n\n}  // namespace plimsoll::tokenizers\n")
    sys.exit(not sound)


if __name__ == "__main__":
    main()
