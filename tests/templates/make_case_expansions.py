"""Writes src/templates/case_expansions.cpp: characters whose upper or title case is more than one character.

    python make_case_expansions.py > ../../../src/templates/case_expansions.cpp
"""


def escaped(text):
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def main():
    print("// Characters whose upper or title case is more than one character (Unicode's SpecialCasing, the rows without\n"
          "// a condition): code point, upper case, title case, in UTF-8. Made by\n// tests/templates/make_case_expansions.py.\n"
          '#include "templates/text.h"\n\nnamespace plimsoll::chat {\nnamespace {\n\nconstexpr CaseExpansion kExpansions[] = {')
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        upper, title = chr(code).upper(), chr(code).title()
        if len(upper) > 1 or len(title) > 1:
            print(f"    {{0x{code:04X}, {escaped(upper)}, {escaped(title)}}},")
    print("};\n\n}  // namespace\n\nstd::span<const CaseExpansion> case_expansions() { return kExpansions; }\n\n}  // namespace plimsoll::chat")


if __name__ == "__main__":
    main()
