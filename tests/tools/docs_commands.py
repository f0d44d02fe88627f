#!/usr/bin/env python3
"""Checks that the commands which README.md and docs/ show can be typed, and that their links lead somewhere.

    tests/tools/docs_commands.py build/plimsoll

Of each `plimsoll …` in a fenced block: the command exists, its options are those of its --help, settings are in
docs/settings.md, and what it names below examples/ and bench/ is there. Of each relative link: the file exists and
has the heading. One line per violation, exit code 1 if there
is any.
"""
import functools
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETTINGS = re.compile(r"^\| `([a-z][\w.]*)` \|", re.M)
OF_RUNS = {"plan", "train", "eval", "profile", "init", "bench"}


def commands(text):
    """(line number, words) of each plimsoll in a fenced block."""
    fenced, joined, begin = False, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if not fenced:
            continue
        if not joined:
            begin = number
        joined += line
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        line, joined = joined.strip().removeprefix("$ "), ""
        if not re.search(r"(^|[ |/(])plimsoll ", line):
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue  # prose with an apostrophe, a line of output
        for at, word in enumerate(words):
            first = at == 0 or words[at - 1] in ("|", "&&", ";") or "=" in words[at - 1]
            if first and pathlib.PurePath(word).name == "plimsoll":
                yield begin, words[at + 1:]


def until_pipe(words):
    out = []
    for word in words:
        if word in ("|", "&&", ";", "&", ">", "<", "2>") or word[0] in "|<>":
            break
        out.append(word)
    return out


@functools.lru_cache(maxsize=None)
def help_of(binary, *names):
    done = subprocess.run([binary, *names, "--help"], text=True, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def wrong_with(binary, words, settings):
    """What cannot be typed of a command."""
    if not words or words[0].startswith("-"):
        return
    names = words[:1]
    text = help_of(binary, *names)
    if text is None:
        yield f"there is no command {words[0]}"
        return
    if len(words) > 1 and not words[1].startswith("-") and words[0] in ("data", "bench"):
        names = words[:2]
        text = help_of(binary, *names)
        if text is None:
            yield f"there is no command {' '.join(names)}"
            return
    for word in words[len(names):]:
        if "…" in word:
            continue
        option = re.match(r"(--[a-z][\w-]*)", word)
        if option and not re.search(re.escape(option[1]) + r"(?![\w-])", text):
            yield f"{' '.join(names)} has no option {option[1]}"
        setting = re.match(r"([a-z][\w.]*)=", word)
        if setting and words[0] in OF_RUNS:
            path = setting[1]
            known = any(path == s or s.startswith(path + ".") or path.startswith(s + ".") for s in settings)
            if not known:
                yield f"there is no setting {path}"
        if re.match(r"(examples|bench|docs|tools)/", word) and not any(c in word for c in "*[{"):
            if not (ROOT / word).exists():
                yield f"there is no {word}"


def headings(text):
    """The anchors that GitHub gives to a page's headings."""
    lines = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def broken_links(page):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"https?:", link):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in headings(target.read_text())):
                yield number, link


def main():
    binary = sys.argv[1]
    settings = set(SETTINGS.findall((ROOT / "docs/settings.md").read_text()))
    bad = count = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, words in commands(page.read_text()):
            words = until_pipe(words)
            count += 1
            for what in wrong_with(binary, words, settings):
                print(f"{page.relative_to(ROOT)}:{number}: {what}: plimsoll {' '.join(words)}")
                bad += 1
        for number, link in broken_links(page):
            print(f"{page.relative_to(ROOT)}:{number}: the link leads nowhere: {link}")
            bad += 1
    print(f"{count} commands, {bad} wrong")
    return 1 if bad or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
