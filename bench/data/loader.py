"""A run's data beside PyTorch's DataLoader on the same files, in turn: samples a second, and a second of CPU time.

    bench/run-loader [--megabytes 20] [--rounds 3] [--work FOLDER]

Plimsoll: `bench data`. Text and JSON lines: tokenized, packed and indexed from nothing, as a first run does, and once
they are ready; of what is ready the setting that takes least CPU time a sample counts. A sample is tokens, targets and where
documents begin, each block of the file checked against its sum when it is read first. PyTorch: an IterableDataset that tokenizes with the `tokenizers` package in its workers and fills
sequences; tokens are a memory-mapped array, shuffled, of which a worker takes rows as 64-bit ids, nothing else. Workers live
as long as the loader. The better of no workers and two counts. Sequences of 512, batches of 8.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "step"))  # whose rounds.py is another

import machine  # noqa: E402
from report import against, table  # noqa: E402
from rounds import run, write_texts  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

RUN = """model:
  config: {{model_type: llama, vocab_size: 8192, hidden_size: 64, intermediate_size: 64, num_hidden_layers: 1,
    num_attention_heads: 2, num_key_value_heads: 2, max_position_embeddings: 512, rms_norm_eps: 1.0e-5}}
data: {{train: {train}, tokenizer: {tokenizer}, sequence_length: 512, packing: {packing}}}
training: {{global_batch_size: 8, max_steps: 10}}
output: {{dir: {out}}}
"""
PEER = """
import json, os, resource, sys, time
import numpy, torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
os.environ["TOKENIZERS_PARALLELISM"] = "false"
path, tokenizer, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
LENGTH = 512

class Texts(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        part, parts = (info.id, info.num_workers) if info else (0, 1)
        encoder, left = Tokenizer.from_file(tokenizer), []
        with open(path, encoding="utf-8") as file:
            lines = file.readlines(1 << 16)
            number = 0
            while lines:
                if number % parts == part:
                    texts = [json.loads(line)["text"] for line in lines] if path.endswith(".jsonl") else ["".join(lines)]
                    for text in texts:
                        left += encoder.encode(text, add_special_tokens=False).ids
                    while len(left) >= LENGTH:
                        yield torch.tensor(left[:LENGTH])
                        left = left[LENGTH:]
                number += 1
                lines = file.readlines(1 << 16)

class Tokens(Dataset):
    def __init__(self):
        self.tokens = numpy.load(path, mmap_mode="r")
    def __len__(self):
        return len(self.tokens) // LENGTH
    def __getitem__(self, i):
        return torch.from_numpy(self.tokens[i * LENGTH:(i + 1) * LENGTH].astype(numpy.int64))

def cpu():
    return sum(getattr(resource.getrusage(who), field) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
               for field in ("ru_utime", "ru_stime"))

tokens = path.endswith(".npy")
loader = DataLoader(Tokens() if tokens else Texts(), batch_size=8, shuffle=True if tokens else None, num_workers=workers,
                    persistent_workers=workers > 0)
samples, epochs, before, start = 0, 0, cpu(), time.perf_counter()
while epochs == 0 or (tokens and time.perf_counter() - start < 2):
    for batch in loader:
        samples += len(batch)
    epochs += 1
seconds = time.perf_counter() - start
del loader
print(json.dumps({"samples": samples, "per_second": samples / seconds, "per_cpu_second": samples / (cpu() - before)}))
"""


def ours(args, log, train, packing):
    """{rung: (samples a second, a second of CPU time)}."""
    path = args.work / "run.yaml"
    path.write_text(RUN.format(train=train, tokenizer=args.work / "tokenizer", packing=packing, out=args.work / "out"))
    lines = run(args, log, [args.binary, "bench", "data", path, "--json"]).splitlines()
    rungs = [event for event in map(json.loads, lines) if event["event"] == "rung"]
    return {event["name"]: (event["samples_per_second"], event["samples_per_cpu_second"], event["bound_by"]) for event in rungs}


def theirs(args, log, train, workers):
    event = json.loads(run(args, log, [sys.executable, "-c", PEER, train, args.work / "tokenizer" / "tokenizer.json", workers]))
    return event["per_second"], event["per_cpu_second"]


def measure(args, log):
    """By kind of file: the rounds of (ours, theirs by workers)."""
    files = {"text": (args.work / "text.txt", args.work / "text.txt", "stream"),
             "JSON lines": (args.work / "text.jsonl", args.work / "text.jsonl", "auto"),
             "shard": (args.work / "tokens.shard", args.work / "tokens.npy", "auto")}
    rounds = {kind: [] for kind in files}
    for _ in range(args.rounds):
        for kind, (mine, other, packing) in files.items():
            rounds[kind].append((ours(args, log, mine, packing), {w: theirs(args, log, other, w) for w in (0, 2)}))
    return rounds


def best_of(sides):
    """Samples a second of CPU time of the cheapest of (samples a second, a second of CPU time, …)."""
    return max(side[1] for side in sides)


def page(r):
    figures, ladder, peers = [], [], []
    for kind, rounds in r["rounds"].items():
        ratio = statistics.median(best_of(mine[name] for name in mine if name != "prepared on the way") / best_of(other.values())
                                  for mine, other in rounds)
        figures.append([f"{kind}, ready, best setting against best", *against(ratio, 5)])
        first = "ready, warm cache" if kind == "shard" else "prepared on the way"
        for rung in (first,) if kind == "shard" else (first, "ready, warm cache"):
            for workers in (2, 0):
                ratio = statistics.median(mine[rung][1] / other[workers][1] for mine, other in rounds)
                figures.append([f"{kind}, {rung}, against {workers} workers", *against(ratio, 5)])
        for rung in rounds[0][0]:
            if all(rung in mine for mine, _ in rounds):
                ladder.append([kind, rung, f"{statistics.median(mine[rung][0] for mine, _ in rounds):,.0f}",
                               f"{statistics.median(mine[rung][1] for mine, _ in rounds):,.0f}", rounds[0][0][rung][2]])
        for workers in (0, 2):
            peers.append([kind, f"{workers} workers", f"{statistics.median(other[workers][0] for _, other in rounds):,.0f}",
                          f"{statistics.median(other[workers][1] for _, other in rounds):,.0f}"])
    cpu = r["cpu"]
    return f"""{machine.title(f"Loader, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; every line the programs printed is in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(cpu)}
- {r["size"] / 1e6:.0f} MB of text, a tokenizer of 8,192 entries, sequences of 512 tokens, batches of 8; PyTorch {r["torch"]}
- Medians of {len(r["rounds"]["text"])} rounds in turn; load average at the start {r["load"]}

Samples a second of CPU time, of all processes, times the DataLoader's (without workers it reads while the step waits):

{table(["files", "measured", "goal", ""], figures, left=1)}

## The ladder

{table(["files", "plimsoll bench data", "samples/s", "per CPU second", "bound by"], ladder, left=2)}

{table(["files", "DataLoader", "samples/s", "per CPU second"], peers, left=2)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-loader", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=20, help="of text")
    parser.add_argument("--rounds", type=int, default=3)
    add_arguments(parser, gigabytes=1)
    args = parser.parse_args()
    with Workplace(args, "loader", "bench/run-loader") as work:
        progress("gathering text")
        size = write_texts(args)
        run(args, work.log, [args.binary, "data", "tokenizer", "--input", args.work / "text.jsonl", "--vocab-size", 8192,
                             "--output", args.work / "tokenizer"])
        for name in ("tokens.shard", "tokens.npy"):
            run(args, work.log, [args.binary, "data", "tokenize", "--tokenizer", args.work / "tokenizer", "--input",
                                 args.work / "text.jsonl", "--output", args.work / name])
        progress("loading in turn")
        rounds = measure(args, work.log)
    torch = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, text=True, check=True)
    work.publish(page(work.about | dict(size=size, rounds=rounds, torch=torch.stdout.strip())))


if __name__ == "__main__":
    main()
