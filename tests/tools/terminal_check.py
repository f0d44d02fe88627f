#!/usr/bin/env python3
"""What a person sees of the program in a real terminal, by tmux: in panes of 40, 80 and 200 columns, with TERM=dumb and
NO_COLOR, and piped. No line may wrap but where one word is wider than the pane, no control sequence may come out.

    python3 tests/tools/terminal_check.py build/plimsoll [--show]

Without tmux it says so and passes. What a model writes is its own and wraps as it likes; it is asked for few tokens.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

COLUMNS = (40, 80, 200)
TEMPLATE = """{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] }}{% endfor %}\
{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"""
RUN = """model:
  config: {model_type: llama, vocab_size: 300, hidden_size: 48, intermediate_size: 64, num_hidden_layers: 2,
    num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 512, rms_norm_eps: 1.0e-5}
  init: random
data: {train: chats.jsonl, eval: held.jsonl, tokenizer: tok, chat_template: t.jinja, sequence_length: 128}
training: {global_batch_size: 4, max_steps: 300, learning_rate: 1.0e-3, warmup_steps: 400, logging_steps: 1, eval_steps: 100}
output: {dir: out, save_steps: 100}
"""
# The last two say what goes in by the keyboard and how the shell reads it.
COMMANDS = (
    ("help", "--help"), ("train help", "train --help"), ("doctor", "doctor"), ("presets", "presets"),
    ("tokenizer", "data tokenizer --input words.txt --vocab-size 300 --output tok2"),
    ("tokenize", "data tokenize --tokenizer tok --chat-template t.jinja --input chats.jsonl --output c.shard"),
    ("inspect data", "data inspect c.shard --tokenizer tok --sequence-length 64"),
    ("plan", "plan run.yaml"), ("plan that does not fit", "plan run.yaml memory.budget=18MiB"),
    ("explain", "plan run.yaml training.precision=bf16 --explain precision"),
    ("explain memory", "plan run.yaml --explain memory"),
    ("diff", "plan --diff run.yaml run.yaml memory.budget=1GiB"),
    ("train", "train run.yaml --resume never"), ("eval", "eval run.yaml model.path=out"),
    ("watch", "watch out"), ("report", "report out --output report.html"),
    ("profile", "profile run.yaml --memory --output prof"), ("profile of a device", "profile run.yaml runtime.device=discrete --output prof"),
    ("ladder", "profile run.yaml --ladder --active 1 --output prof"), ("bench data", "bench data run.yaml --milliseconds 50"),
    ("inspect", "inspect out --tensors"), ("init", "init --model out --data chats.jsonl --output new.yaml --force"),
    ("import", "import sft.yaml --output imported.yaml"),
    ("generate", "generate --model out --prompt hello --max-new-tokens 6"),
    ("export", "export --model out --format gguf --output m.gguf"),
    ("wrong setting", "train run.yaml training.learning_rat=3 data.train=nowhere.txt"),
    ("chat", "generate --model out --chat --max-new-tokens 6"),
)
IMPORTED = """model_name_or_path: out
dataset_name: chats.jsonl
per_device_train_batch_size: 4
learning_rate: 2.0e-5
group_by_length: true
neftune_noise_alpha: 5
report_to: none
"""


class Terminal:
    """A tmux server of its own, with one pane at a time."""

    def __init__(self, folder):
        self.socket = str(folder / "tmux")
        self.raw = folder / "raw.txt"

    def tmux(self, *arguments, check=True):
        said = subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *arguments], capture_output=True,
                              text=True, check=check)
        return said.stdout

    def run(self, command, columns, environment, keys=()):
        """What the pane holds in rows, the same with wrapped rows joined, and all bytes that came."""
        self.raw.write_bytes(b"")
        shell = (f"export {environment}; unset COLUMNS; tmux -S {shlex.quote(self.socket)} wait-for ready; {command}; "
                 f"echo \"exit $?\"; tmux -S {shlex.quote(self.socket)} wait-for -S done; sleep 600")
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", "60", "sh", "-c", shell)
        self.tmux("set-option", "-g", "history-limit", "50000", check=False)
        self.tmux("pipe-pane", "-t", "t", f"cat >> {shlex.quote(str(self.raw))}")
        self.tmux("wait-for", "-S", "ready")
        for wait_for, key in keys:
            self.until(wait_for)
            self.tmux("send-keys", "-t", "t", *key)
        self.tmux("wait-for", "done")
        rows = self.tmux("capture-pane", "-t", "t", "-p", "-S", "-").rstrip("\n").split("\n")
        joined = self.tmux("capture-pane", "-t", "t", "-p", "-J", "-S", "-").rstrip("\n").split("\n")
        coloured = self.tmux("capture-pane", "-t", "t", "-p", "-e", "-S", "-")
        self.tmux("kill-session", "-t", "t", check=False)
        time.sleep(0.05)
        return rows, joined, coloured, self.raw.read_bytes()

    def until(self, text):
        for _ in range(200):
            if text in self.tmux("capture-pane", "-t", "t", "-p", "-J"):
                return
            time.sleep(0.05)
        raise SystemExit(f"never came: {text}")


def write_inputs(folder):
    chats = [{"messages": [{"role": "user", "content": f"say {i} and some more words"},
                           {"role": "assistant", "content": f"{i} it is, said the ship to her line"}]} for i in range(60)]
    lines = [json.dumps(chat) + "\n" for chat in chats]
    (folder / "chats.jsonl").write_text("".join(lines))
    (folder / "held.jsonl").write_text("".join(lines[:20]))
    (folder / "words.txt").write_text("the ship is loaded to her line. " * 500)
    (folder / "t.jinja").write_text(TEMPLATE)
    (folder / "run.yaml").write_text(RUN)
    (folder / "sft.yaml").write_text(IMPORTED)


def wrapped_lines(joined, columns):
    """Lines that the terminal had to wrap, but for those of one word that is wider than it."""
    return [line for line in joined
            if len(line.rstrip()) > columns and max(map(len, line.split())) < columns - 2]


def stray(raw, environment, rewrites):
    text = raw.decode(errors="replace")
    found = re.findall(r"\x1b[^\n]{0,8}|[\x00-\x08\x0b\x0c\x0e-\x1a\x7f]", text)
    if not rewrites:
        found += re.findall(r"\r(?!\r*\n)", text)
    # Dim, for what is not in the loss, is the one thing that a terminal which can is asked for.
    if "NO_COLOR" not in environment and "dumb" not in environment:
        found = [code for code in found if not re.match(r"\x1b\[[02]m", code)]
    return found


def check(program, folder, show):
    terminal, failures, panes = Terminal(folder), [], 0
    terminal.tmux("new-session", "-d", "-s", "keep", "sleep", "3600")
    terminal.tmux("set-option", "-g", "history-limit", "50000")
    cases = [(columns, "TERM=screen") for columns in COLUMNS]
    cases += [(80, "TERM=dumb"), (80, "TERM=screen NO_COLOR=1")]
    chat = [("goes on", ("hello", "Enter", "/exit", "Enter"))]
    try:
        for columns, environment in cases:
            for name, arguments in COMMANDS:
                command = f"cd {shlex.quote(str(folder))} && {program} {arguments}"
                rows, joined, coloured, raw = terminal.run(command, columns, environment, chat if name == "chat" else ())
                panes += 1
                problems = [f"wraps: {line}" for line in wrapped_lines(joined, columns)]
                problems += [f"code: {code!r}" for code in stray(raw, environment, "dumb" not in environment)]
                if name not in ("plan that does not fit", "wrong setting") and "exit 0" not in joined:
                    problems.append("failed")
                if show or problems:
                    print(f"== {name}, {columns} columns, {environment}", *rows, sep="\n")
                failures += [f"{name}, {columns} columns, {environment}: {problem}" for problem in problems]
        failures += piped(program, folder)
    finally:
        terminal.tmux("kill-server", check=False)
    for failure in failures:
        print("FAILED", failure)
    print(f"{panes} panes and {len(COMMANDS)} pipes, {len(failures)} failures")
    return 1 if failures else 0


def piped(program, folder):
    failures = []
    for name, arguments in COMMANDS:
        said = subprocess.run(f"{program} {arguments}", shell=True, cwd=folder, capture_output=True, input=b"hello\n",
                              env=os.environ | {"TERM": "xterm", "COLUMNS": "40"})
        codes = stray(said.stdout + said.stderr, "NO_COLOR dumb", rewrites=False)
        failures += [f"{name}, piped: code: {code!r}" for code in codes]
    return failures


def main():
    show = "--show" in sys.argv
    program = str(pathlib.Path(sys.argv[1]).resolve())
    if shutil.which("tmux") is None:
        print("tmux is not installed: nothing was checked")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder)
        subprocess.run([program, "data", "tokenizer", "--input", "words.txt", "chats.jsonl", "--vocab-size", "300",
                        "--special-token", "<|endoftext|>", "--output", "tok"], cwd=folder, check=True,
                       capture_output=True)
        return check(shlex.quote(program), folder, show)


if __name__ == "__main__":
    sys.exit(main())
