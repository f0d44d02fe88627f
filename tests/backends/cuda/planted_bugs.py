#!/usr/bin/env python3
"""Puts bugs into the CUDA kernels, one at a time, and sees that the tests of ops find each on the fake card.

    planted_bugs.py BUILD                all bugs of planted_bugs.txt (the last line counts those that were found)
    planted_bugs.py BUILD --sample N     about N of them, which the commit's name chooses (tools/sampling.py)
    planted_bugs.py BUILD --only WORDS   those whose description has these words

BUILD has test_backends_cpu and the fake card. A bug changes the sources that the fake card is made of, and not the
program: an argument struct with two fields exchanged is one that the host fills in another order than the card reads.
Only what a bug touches is compiled again; the tests stop at their first failure. PLIMSOLL_WHOLE_CAMPAIGN: all.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[2] / "src" / "backends" / "cuda"
sys.path.insert(0, str(HERE.parents[2] / "tools"))
import sampling  # noqa: E402


class Bug:
    def __init__(self, text):
        lines = text.strip("\n").split("\n")
        self.what = lines[0]
        self.file, self.tests, *compiled = lines[1].split()
        self.compiled = compiled[0] if compiled else ""
        self.before = "\n".join(line[1:] for line in lines[2:] if line.startswith("-"))
        self.after = "\n".join(line[1:] for line in lines[2:] if line.startswith("+"))


def bugs():
    parts = (HERE / "planted_bugs.txt").read_text().split("\n\n")
    return [Bug(part) for part in parts if part.strip() and not part.startswith("#")]


class Card:
    """The fake card's library, made again of changed sources."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.twin = build / "tests" / "twin"
        commands = [c for c in json.loads((build / "compile_commands.json").read_text()) if "fake_cuda.dir" in c["command"]]
        self.compile = {pathlib.Path(c["file"]).name: c for c in commands if pathlib.Path(c["file"]).parent == self.twin}
        self.objects = {pathlib.Path(c["file"]).name: self.object_of(c) for c in commands}
        for library in (build / "tests" / "fake-card").iterdir():
            shutil.copy(library, folder / library.name)

    @staticmethod
    def object_of(command):
        words = shlex.split(command["command"])
        return os.path.join(command["directory"], words[words.index("-o") + 1])

    def make(self, sources, compiled):
        """The library of these sources in the folder; `compiled`: of this one alone, and the others as they were."""
        made = self.folder / "twin"
        subprocess.run([sys.executable, HERE / "twin" / "make_twin.py", sources, made], check=True)
        objects = dict(self.objects)
        for name, command in self.compile.items():
            if compiled not in (made / name).read_text() or not self.differs(made, name):
                continue
            objects[name] = str(self.folder / (name + ".o"))
            words = shlex.split(command["command"].replace(str(self.twin), str(made)))
            words[words.index("-o") + 1] = objects[name]
            subprocess.run(words, check=True, cwd=command["directory"])
        library = self.folder / "libcuda.so.1"
        subprocess.run(["g++", "-shared", "-Wl,-soname,libcuda.so.1,-z,defs", "-o", library, *objects.values(), "-lfmt"], check=True)

    def differs(self, made, name):
        """Whether what this file includes of the device's sources is another text than was built."""
        text = (made / name).read_text()
        seen, todo = set(), [line.split('"')[1] for line in text.split("\n") if line.startswith('#include "backends/cuda/')]
        while todo:
            path = todo.pop()
            if path in seen or not (made / path).exists():
                continue
            seen.add(path)
            changed = (made / path).read_text()
            if changed != (self.twin / path).read_text():
                return True
            todo += [line.split('"')[1] for line in changed.split("\n") if line.startswith('#include "backends/cuda/')]
        return text != (self.twin / name).read_text()


def found(build, card, bug):
    """How the tests found it; empty: they did not."""
    environment = {**os.environ, "PLIMSOLL_CUDA_LIBRARIES": str(card.folder), "PLIMSOLL_CARD_ONLY": "1",
                   "GTEST_BREAK_ON_FAILURE": "0", "GTEST_FAIL_FAST": "1"}
    command = [build / "tests" / "test_backends_cpu", f"--gtest_filter={bug.tests}"]
    try:
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if run.returncode == 0 and "runs of ops were held" not in run.stdout:
        sys.exit(f"{bug.what}: no test of {bug.tests} ran on the card")
    if run.returncode == 0:
        return ""
    if run.returncode < 0:
        return f"signal {-run.returncode}"
    return next((line.strip() for line in (run.stdout + run.stderr).split("\n") if "(card" in line or "wrote beyond" in line
                 or "error" in line), "a failure")


def plant(build, folder, bug):
    sources = folder / "sources"
    shutil.copytree(SOURCES, sources)
    file = sources / bug.file
    text = file.read_text()
    if text.count(bug.before) != 1:
        sys.exit(f"{bug.what}: its text stands {text.count(bug.before)} times in {bug.file}")
    file.write_text(text.replace(bug.before, bug.after))
    card = Card(build, folder)
    card.make(sources, bug.compiled)
    return found(build, card, bug)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = [bug for bug in bugs() if given.only in bug.what]
    if given.sample and "PLIMSOLL_WHOLE_CAMPAIGN" not in os.environ:
        chosen = sampling.sample(chosen, max(1, len(chosen) // given.sample), lambda bug: False)
    count = 0
    for bug in chosen:
        with tempfile.TemporaryDirectory() as folder:
            how = plant(given.build.resolve(), pathlib.Path(folder), bug)
        count += how != ""
        print(f"{'found' if how else 'NOT FOUND'}: {bug.what} {how[:120]}", flush=True)
    print(f"{count} of {len(chosen)} planted bugs were found")
    sys.exit(count != len(chosen))


if __name__ == "__main__":
    main()
