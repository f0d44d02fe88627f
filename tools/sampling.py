#!/usr/bin/env python3
"""Chooses what one landing looks at where all of it would take too long: what changed, and a part of the rest.

    tools/sampling.py --parts 4 NAME[=FOLDER,…]…     prints the names chosen
    tools/sampling.py --parts 4 --modules            those of tests/CMakeLists.txt, with their folders of src/ and tests/
    tools/sampling.py --parts 4 --part               which of the parts it is, from 0
    tools/sampling.py --parts 4 --most 20 NAME…      of those that changed at most so many: for landings that change everything

The commit's name chooses the part, so that landings look at different ones; `make campaign` looks at all. What changed is
the difference from the merge base with origin/main or main; a commit that lies on that branch is compared with its parent.
PLIMSOLL_BASE names another commit to compare with.
"""
import argparse
import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*words, root=ROOT):
    """What git prints; empty where it fails, or where there is none."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def part_of(parts):
    """Which of the parts is this commit's."""
    return int(git("rev-parse", "--short=8", "HEAD") or "0", 16) % parts


@functools.cache
def base_commit(root=ROOT):
    """What the tree is compared with; empty where there is nothing."""
    head = git("rev-parse", "HEAD", root=root)
    bases = [os.environ.get("PLIMSOLL_BASE", "")] + [git("merge-base", "HEAD", b, root=root) for b in ("origin/main", "main")]
    return next((b for b in bases if b and b != head), git("rev-parse", "--verify", "--quiet", "HEAD~1", root=root))


@functools.cache
def changed(root=ROOT):
    """Files, relative to the tree, that differ from the main branch or are not committed."""
    base = base_commit(root)
    files = git("diff", "--name-only", "--diff-filter=d", base, root=root) if base else ""
    return frozenset((files + "\n" + git("ls-files", "-o", "--exclude-standard", root=root)).split("\n")) - {""}


def changed_lines(file, root=ROOT):
    """[first, last] of each range of lines that changed in the file; empty for one that is not committed."""
    hunks = re.findall(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", git("diff", "-U0", base_commit(root), "--", file, root=root), re.M)
    return [[int(first), int(first) + int(count or 1) - 1] for first, count in hunks if count != "0"]


def sample(names, parts, has_changed):
    """Names of the commit's part and those that changed, in order."""
    part = part_of(parts)
    return [name for i, name in enumerate(names) if i % parts == part or has_changed(name)]


def some(names, most):
    """At most so many of the names, spread over all, as the commit chooses."""
    parts = max(1, -(-len(names) // most))
    return names[part_of(parts)::parts]


def modules():
    """Modules of tests/CMakeLists.txt, each as NAME=FOLDER,…"""
    names = re.findall(r"^plimsoll_test\((\S+)", (ROOT / "tests/CMakeLists.txt").read_text(), re.M)
    return [f"{name.replace('/', '_')}=src/{name}/,tests/{name}/" for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--parts", type=int, required=True)
    parser.add_argument("--most", type=int)
    parser.add_argument("--part", action="store_true")
    given = parser.parse_args()
    if given.part:
        print(part_of(given.parts))
        return 0
    folders = {}
    for name in modules() if given.modules else given.names:
        name, _, paths = name.partition("=")
        folders[name] = tuple(paths.split(",")) if paths else ()
    names = [name for name in folders if any(file.startswith(folders[name]) for file in changed())]
    if given.most:
        names = some(names, given.most)
    print(*sample(list(folders), given.parts, lambda name: name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
