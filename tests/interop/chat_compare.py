"""Holds chat templates against transformers (Jinja2): the text byte for byte, the {% generation %} blocks, errors.

    python chat_compare.py --build build [--only TEXT] [--random 2000] [--seed 1] [--templates FOLDER] [--speed]

The templates and conversations of tests/data/chat, a list of constructs one by one, templates made at random over the
grammar, model directories, and with --templates the .jinja files of a folder, public models' for instance. --speed compares the time of a render with Jinja2's, in this run. One line per check,
PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "templates"))

import record as oracle  # noqa: E402
from conversations import CONVERSATIONS, TOKENS  # noqa: E402

import chat_constructs  # noqa: E402
from checks import Checks  # noqa: E402
from driver import build_driver  # noqa: E402

TEMPLATES = {file.stem: file.read_text() for file in sorted((HERE.parent / "templates" / "templates").glob("*.jinja"))}


def framed(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def framed_case(template, tokens, record, prompt):
    lines = "".join(f"{name}\t{text}\n" for name, text in tokens.items())
    return framed(template) + framed(lines) + framed(json.dumps(record, ensure_ascii=False)) + framed("1" if prompt else "0")


def answers(output, count):
    at, out = 0, []
    for _ in range(count):
        ok, size = struct.unpack_from("<BI", output, at)
        text = output[at + 5:at + 5 + size]
        (num_spans,) = struct.unpack_from("<I", output, at + 5 + size)
        at += 9 + size
        spans = [list(struct.unpack_from("<II", output, at + 8 * i)) for i in range(num_spans)]
        at += 8 * num_spans
        out.append((bool(ok), text, spans))
    return out


def run(binary, cases, arguments=()):
    done = subprocess.run([binary, *arguments], input=b"".join(cases), capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-400:]}")
    return done.stdout


def differs(template, expected, got):
    """What is wrong, or nothing. `expected`: (text or None, blocks or error)."""
    text, blocks = expected
    ok, ours, spans = got
    if text is None:
        return f"renders {ours[:200]!r}, there: {blocks}" if ok else ""
    if not ok and b"cannot be sliced" in ours:
        return ""  # constants are sliced at load there, which leaves undefined
    if not ok:
        return f"fails: {ours.decode(errors='replace')}, there: {text[:200]!r}"
    if ours != text.encode():
        return f"renders {ours.decode(errors='replace')[:300]!r}, there: {text[:300]!r}"
    if "generation" in template and blocks and blocks != spans:
        return f"blocks {spans}, there: {blocks}"
    return ""


# What is an error here and text there: values and arguments of kinds that no public template gives. Counted in constructs
# and templates at random; of a model's template it is a failure.
REFUSALS = re.compile(rb"(?:is|are) (?:not )?supported|cannot be printed|is no integer|expected an integer or its text|cannot be a key|no argument|takes .* arguments"
                      rb"|changes the case|sorts no texts|cannot be sliced|'([<>]=?|\*)' is not possible|is not known in a loop")


def compare(checks, binary, name, cases, detail=2, may_refuse=False):
    """`cases`: (label, template, record, prompt)."""
    tokenizer = oracle.make_tokenizer()
    got = answers(run(binary, [framed_case(template, TOKENS, record, prompt) for _, template, record, prompt in cases]), len(cases))
    wrong, failing, refused = [], 0, 0
    for (label, template, record, prompt), ours in zip(cases, got):
        expected = oracle.render(tokenizer, template, record, prompt)
        failing += expected[0] is None
        if may_refuse and expected[0] is not None and not ours[0] and REFUSALS.search(ours[1]):
            refused += 1
            continue
        if why := differs(template, expected, ours):
            wrong.append(f"{label}: {why}")
    checks.check(name, "rendered", not wrong, f"{len(cases)} cases, {failing} of them errors, {refused} refused here" if not wrong
                 else f"{len(wrong)} of {len(cases)} differ\n  " + "\n  ".join(wrong[:detail]))


def families(checks, binary, folder):
    templates = dict(TEMPLATES)
    if folder:
        templates |= {file.stem: file.read_text() for file in sorted(folder.glob("*.jinja"))}
    for name, template in templates.items():
        compare(checks, binary, f"template {name}", [(f"{conversation} {prompt}", template, record, prompt)
                                                     for conversation, record in CONVERSATIONS.items() for prompt in (False, True)])


def constructs(checks, binary):
    for name, lines in chat_constructs.CONSTRUCTS.items():
        compare(checks, binary, f"construct {name}", [(line, line, chat_constructs.RECORD, True) for line in lines], detail=12,
                may_refuse=True)


def at_random(checks, binary, count, seed):
    made = []
    for i in range(count):
        writer = chat_constructs.Writer(random.Random(seed * 1_000_003 + i))
        made.append((f"random {i}", writer.template(), chat_constructs.RECORD, bool(i % 2)))
    for at in range(0, count, 500):
        compare(checks, binary, f"random from {at}", made[at:at + 500], detail=4, may_refuse=True)


def directories(checks, binary, folder):
    """A template in each of the places that transformers reads one from."""
    tokens = {"bos_token": {"__type": "AddedToken", "content": "<B>"}, "eos_token": "<E>"}
    say = "{{ bos_token }}%s{{ messages[0].content }}{{ eos_token }}"
    record = {"messages": [{"role": "user", "content": "x"}]}
    with_tools = {**record, "tools": [{"type": "function"}]}
    layouts = {
        "config text": ({"tokenizer_config.json": {**tokens, "chat_template": say % "C"}}, b"<B>Cx<E>", b"<B>Cx<E>"),
        "config list": ({"tokenizer_config.json": {**tokens, "chat_template": [
            {"name": "default", "template": say % "D"}, {"name": "tool_use", "template": say % "T"}]}}, b"<B>Dx<E>", b"<B>Tx<E>"),
        "file": ({"tokenizer_config.json": {**tokens, "chat_template": "no"}, "chat_template.jinja": say % "F"}, b"<B>Fx<E>", b"<B>Fx<E>"),
        "more files": ({"tokenizer_config.json": tokens, "chat_template.jinja": say % "F",
                        "additional_chat_templates/tool_use.jinja": say % "U"}, b"<B>Fx<E>", b"<B>Ux<E>"),
    }
    for name, (files, plain, tooled) in layouts.items():
        place = folder / name.replace(" ", "_")
        for file, content in files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(content if isinstance(content, str) else json.dumps(content))
        got = answers(run(binary, [framed(json.dumps(record)), framed(json.dumps(with_tools))], ["open", place]), 2)
        checks.check(f"directory {name}", "rendered", [text for _, text, _ in got] == [plain, tooled], f"{[text for _, text, _ in got]}")


def speed(binary):
    tokenizer = oracle.make_tokenizer()
    for name in TEMPLATES:
        record = CONVERSATIONS["turns"]
        if oracle.render(tokenizer, TEMPLATES[name], record, True)[0] is None:
            continue
        ours = run(binary, [framed_case(TEMPLATES[name], TOKENS, record, True)], ["seconds", "2000"]).split()
        begin = time.perf_counter()
        for _ in range(200):
            oracle.chat_template_utils.render_jinja_template([record["messages"]], chat_template=TEMPLATES[name],
                                                             add_generation_prompt=True, **TOKENS)
        theirs = (time.perf_counter() - begin) / 200
        print(f"speed {name}: {1e6 * float(ours[0]):.1f} us, with spans {1e6 * float(ours[1]):.1f} us, Jinja2 {1e6 * theirs:.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", type=pathlib.Path)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)  # of what Jinja2 compiles a template to
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        binary = build_driver(options.build, "chat_driver.cpp", folder)
        parts = {"families": lambda: families(checks, binary, options.templates), "constructs": lambda: constructs(checks, binary),
                 "random": lambda: at_random(checks, binary, options.random, options.seed),
                 "directories": lambda: directories(checks, binary, folder)}
        for part, check in parts.items():
            if options.only in part:
                check()
        if options.speed:
            speed(binary)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
