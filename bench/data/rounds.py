"""Text to tokens to steps: encoding and training a tokenizer beside the `tokenizers` package, worst cases, the memory of a
large input, and how long a step of W1 waits for its data.

    bench/run-data [--megabytes 100] [--rounds 3] [--gigabytes 10] [--work FOLDER]

The text is this machine's own: C and C++ headers, Python, notes, shuffled, a document a file.
"""
import argparse
import glob
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from report import against, table  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

PATTERNS = ("/usr/include/**/*", "/usr/lib/python3*/**/*.py", "/usr/share/doc/**/*",
            os.path.join(os.path.dirname(os.__file__), "**", "*.py"), os.path.join(sys.prefix, "lib", "**", "*.py"))
PEER = """
import json, sys, time
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
texts = [json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
start = time.perf_counter()
tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
    vocab_size=32000, min_frequency=2, show_progress=False, special_tokens=["<|endoftext|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
seconds = time.perf_counter() - start
ours = json.load(open(sys.argv[2]))["model"]
theirs = json.loads(tokenizer.to_str())["model"]
pairs = lambda model: [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
print(json.dumps({"seconds": seconds, "same": ours["vocab"] == theirs["vocab"] and pairs(ours) == pairs(theirs)}))
"""


def run(args, log, command):
    """Its stdout."""
    command = [str(word) for word in command]
    shown = machine.shown(command) if len(command) < 30 else machine.shown(command[:8]) + " …"
    log.write(f"$ {shown.replace(str(args.work), 'WORK')}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, stdin=subprocess.DEVNULL, text=True)
    log.write(done.stdout.replace(str(args.work), "WORK"))
    if done.returncode != 0:
        raise SystemExit(f"bench: exit code {done.returncode}; see {log.path}")
    return done.stdout


def events(args, log, *words):
    return [json.loads(line) for line in run(args, log, [args.binary, *words, "--json"]).splitlines()]


def write_texts(args):
    """text.txt and text.jsonl; returns the bytes of the texts."""
    files = sorted({name for pattern in PATTERNS for name in glob.glob(pattern, recursive=True)})
    random.Random(0).shuffle(files)
    size = 0
    with open(args.work / "text.txt", "w", encoding="utf-8") as plain, open(args.work / "text.jsonl", "w", encoding="utf-8") as lines:
        for name in files:
            try:
                text = pathlib.Path(name).read_text(encoding="utf-8") if os.path.getsize(name) < 300_000 else ""
            except (OSError, UnicodeDecodeError):
                continue
            plain.write(text)
            lines.write(json.dumps({"text": text}, ensure_ascii=False) + "\n" if text else "")
            size += len(text.encode())
            if size > args.megabytes * 1e6:
                return size
    return size


def measure_training(args, log):
    """Rounds of (ours, theirs) in seconds, and whether vocabulary and merges are the same."""
    rows, same = [], True
    for _ in range(args.rounds):
        ours = events(args, log, "data", "tokenizer", "--input", args.work / "text.jsonl", "--vocab-size", 32000,
                      "--special-token", "<|endoftext|>", "--output", args.work / "tokenizer")[-1]["seconds"]
        theirs = json.loads(run(args, log, [sys.executable, "-c", PEER, args.work / "text.jsonl", args.work / "tokenizer" / "tokenizer.json"]))
        rows.append((ours, theirs["seconds"]))
        same = same and theirs["same"]
    return rows, same


def tokenize(args, log, threads, *inputs):
    return events(args, log, "data", "tokenize", "--tokenizer", args.work / "tokenizer", "--input", *inputs, "--output",
                  args.work / "out.shard", "--threads", threads)[-1]


def measure_commands(args, log):
    """{(file, threads): [MB/s]} of the whole command."""
    rates = {}
    for _ in range(args.rounds):
        for name in ("text.txt", "text.jsonl"):
            for threads in (1, 2):
                rates.setdefault((name, threads), []).append(tokenize(args, log, threads, args.work / name)["bytes_per_second"] / 1e6)
    return rates


def measure_worst(args, log):
    """{what: MB/s} on one thread."""
    rates = {}
    for what, content in (("one letter", b"a" * 10**7), ("spaces", b" " * 10**7), ("random bytes", random.Random(1).randbytes(10**7))):
        (args.work / "worst.txt").write_bytes(content)
        rates[what] = tokenize(args, log, 1, args.work / "worst.txt")["bytes_per_second"] / 1e6
    return rates


def measure_memory(args, log, size):
    """(input bytes, peak bytes): the same file many times over."""
    count = max(1, round(args.gigabytes * 1e9 / size))
    event = tokenize(args, log, 2, *[args.work / "text.txt"] * count)
    (args.work / "out.shard").unlink()
    return event["text_bytes"], event["peak_resident_bytes"]


def measure_encoder(args, log):
    """Lines of the comparison with the package: (tokenizer, what, MB/s, package's MB/s, ratio)."""
    text = run(args, log, [sys.executable, ROOT / "tests/interop/tokenizers_compare.py", "--build", pathlib.Path(args.binary).parent,
                           "--random", 0, "--speed"])
    return re.findall(r"PASS (.+?): speed on (.+?): ([\d.]+) MB/s, the package ([\d.]+) MB/s, ([\d.]+) times", text)


def measure_waits(args, log):
    """{kind: (share of the steps' time that was waited, worst step's)} of W1."""
    with open(args.work / "text.jsonl", encoding="utf-8") as lines:
        (args.work / "w1.jsonl").write_text("".join(line for _, line in zip(range(1500), lines)), encoding="utf-8")
    (args.work / "w1.txt").write_bytes((args.work / "text.txt").read_bytes()[:20_000_000].decode("utf-8", "ignore").encode())
    run(args, log, [args.binary, "data", "tokenizer", "--input", args.work / "w1.jsonl", "--vocab-size", 4096, "--output", args.work / "w1"])
    run(args, log, [args.binary, "data", "tokenize", "--tokenizer", args.work / "w1", "--input", args.work / "w1.jsonl",
                    "--output", args.work / "w1.shard"])
    waits = {}
    for name in ("w1.txt", "w1.jsonl", "w1.shard"):
        shutil.rmtree(args.work / "run", ignore_errors=True)
        steps = [e for e in events(args, log, "train", "bench/step/w1/run.yaml", f"data.tokenizer={args.work / 'w1'}",
                                   f"data.train={args.work / name}", "data.shuffle=true", "training.max_steps=40",
                                   f"output.dir={args.work / 'run'}") if e["event"] == "step"][1:]
        shares = [e["data_wait_seconds"] / e["step_seconds"] for e in steps]
        waits[name] = (sum(e["data_wait_seconds"] for e in steps) / sum(e["step_seconds"] for e in steps), max(shares))
    return waits


def page(r):
    cpu, rates, worst = r["cpu"], r["rates"], r["worst"]
    median = {key: statistics.median(values) for key, values in rates.items()}
    training = statistics.median(theirs / ours for ours, theirs in r["training"])
    five = r["encoder"][:5], [row for row in r["encoder"] if row[1] != "code and prose"][:5]
    least = [min(float(row[2]) for row in rows) for rows in five]
    rows = [
        ["encoding, one thread, code and English, MB/s, slowest of five kinds", *against(least[0], 60)],
        ["encoding, one thread, mixed scripts, MB/s, slowest of five kinds", *against(least[1], 20)],
        ["against the package, least", *against(min(float(row[4]) for rows in five for row in rows), 15)],
        ["whole command, text, two threads against one", *against(median["text.txt", 2] / median["text.txt", 1], 1.8)],
        ["whole command, JSON lines, two threads against one", *against(median["text.jsonl", 2] / median["text.jsonl", 1], 1.8)],
        *[[f"10 MB of {what}, MB/s", *against(rate, 5)] for what, rate in worst.items()],
        [f"training a tokenizer, {r['size'] / 1e6:.0f} MB, 32k, against the package", *against(training, 3)],
        [f"memory of data tokenize on {r['memory'][0] / 1e9:.1f} GB, MB", *against(r["memory"][1] / 1e6, 300, at_most=True)],
        *[[f"W1 from {name}: waited, % of the steps", *against(100 * share, 0.5, at_most=True)] for name, (share, _) in r["waits"].items()],
    ]
    return f"""{machine.title(f"Text, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; every line the programs printed is in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(cpu)}, {r["memory_bytes"] / (1 << 30):.1f} GiB; {" ".join(cpu["flags"])}
- The text: {r["size"] / 1e6:.0f} MB of headers, Python and notes of this machine; load average at the start {r["load"]}
- Vocabulary and merges of both trainers: {"the same" if r["same"] else "different"}

{table(["figure", "measured", "goal", ""], rows, left=1)}

## Rounds

{table(["encoding, one thread", "text", "MB/s", "the package, MB/s", "ratio"], [list(row) for row in r["encoder"]])}

{table(["whole command", "threads", "MB/s"], [[name, str(threads), "  ".join(f"{v:.1f}" for v in values)] for (name, threads), values in rates.items()], left=1)}

{table(["training a tokenizer", "plimsoll, s", "the package, s", "ratio"], [["round", f"{o:.2f}", f"{t:.2f}", f"{t / o:.1f}"] for o, t in r["training"]], left=1)}

{table(["W1", "waited, %", "worst step, %"], [[name, f"{100 * s:.3f}", f"{100 * w:.3f}"] for name, (s, w) in r["waits"].items()], left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100, help="of text")
    parser.add_argument("--gigabytes", type=float, default=10, help="of the input whose memory is measured")
    parser.add_argument("--rounds", type=int, default=3)
    add_arguments(parser, gigabytes=7)
    args = parser.parse_args()
    with Workplace(args, "data", "bench/run-data") as work:
        progress("gathering text")
        size = write_texts(args)
        progress("training tokenizers")
        training, same = measure_training(args, work.log)
        progress("tokenizing")
        rates, worst = measure_commands(args, work.log), measure_worst(args, work.log)
        memory = measure_memory(args, work.log, size)
        progress("encoding beside the package")
        encoder = measure_encoder(args, work.log)
        progress("W1 on text")
        waits = measure_waits(args, work.log)
    work.publish(page(work.about | dict(memory_bytes=machine.memory_bytes("MemTotal"), size=size, training=training, same=same,
                                        rates=rates, worst=worst, memory=memory, encoder=encoder, waits=waits)))


if __name__ == "__main__":
    main()
