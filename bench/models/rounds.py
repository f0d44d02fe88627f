"""Loading, saving and decoding a model of SmolLM-135M's shape (W2), each beside its yardstick, in turn.

    bench/run-models [--rounds 3] [--tokens 128] [--work FOLDER]

loading   `plimsoll train` from a directory of fp32 safetensors in the file cache: its own load event, and the start-up
saving    a checkpoint (weights and Adam's moments, 1.6 GB) beside `dd bs=8M conv=fsync` of the same size on the same disk
decode    one prompt, greedy, beside transformers; the floor is the weights' bytes over the memory's read rate
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from processes import Side  # noqa: E402
from report import against, table  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

PROMPT = ",".join(str(100 + 7 * i) for i in range(32))


def plimsoll(args, log, *words):
    """Runs a command; returns its events."""
    command = [args.binary, *map(str, words), "--json"]
    log.write(f"$ {machine.shown(command).replace(str(args.work), 'WORK')}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, stdin=subprocess.DEVNULL, text=True)
    log.write(done.stdout.replace(str(args.work), "WORK"))
    if done.returncode != 0:
        raise SystemExit(f"bench: exit code {done.returncode}; see {log.path}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def pick(events, name):
    return [event for event in events if event["event"] == name]


def make_model(args, log):
    """A directory with random weights, as a training writes it, and tokens to train on."""
    subprocess.run([sys.executable, "-c", "import numpy, sys; numpy.save(sys.argv[1], numpy.random.default_rng(0)"
                    ".integers(0, 49152, 512 * 64, dtype=numpy.int32))", args.work / "tokens.npy"], check=True)
    plimsoll(args, log, "train", "bench/step/w2/run.yaml", f"data.train={args.work}/tokens.npy", "training.max_steps=1",
             f"output.dir={args.work}/made")
    return args.work / "made" / "final"


def training(args, model, folder, *words):
    return ["train", "bench/step/w2/run.yaml", f"model.path={model}", "model.init=pretrained",
            f"data.train={args.work}/tokens.npy", f"output.dir={args.work}/{folder}", "--resume", "never", *words]


def measure_loading(args, model, log):
    """[(bytes, seconds, start-up seconds)]: the first process of a machine is slower to get its memory."""
    rows = []
    for _ in range(args.rounds + 1):
        events = plimsoll(args, log, *training(args, model, "loaded", "training.max_steps=3"))
        load, summary = pick(events, "load")[0], pick(events, "summary")[0]
        rows.append((load["bytes"], load["seconds"], summary["startup_seconds"]))
    return rows[1:]


def dd(args, size, log):
    """Seconds of `dd conv=fsync` of about `size` bytes."""
    path = args.work / "dd.out"
    command = ["dd", "if=/dev/zero", f"of={path}", "bs=8M", f"count={size // (8 << 20)}", "conv=fsync"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    path.unlink()
    log.write(f"$ dd if=/dev/zero of=WORK/dd.out bs=8M count={size // (8 << 20)} conv=fsync\n{seconds:.3f} s\n")
    return seconds


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


def measure_saving(args, model, log):
    """Rounds of dd and of a run with saves behind it: (bytes, dd s, save s alone, stood still s, longer s)."""
    rows = []
    for _ in range(args.rounds):
        out = args.work / "saved"
        shutil.rmtree(out, ignore_errors=True)
        events = plimsoll(args, log, *training(args, model, "saved", "training.max_steps=13", "output.save_steps=4",
                                               "output.save_total_limit=1"))
        seconds = {step["step"]: step["step_seconds"] for step in pick(events, "step")}
        saves = {pathlib.Path(save["path"]).name: save for save in pick(events, "checkpoint")}
        behind = (5, 9, 13)
        usual = statistics.median(value for step, value in seconds.items() if step not in (1, *behind))
        size = folder_bytes(out / "checkpoint-13")
        still = max(saves[f"checkpoint-{step - 1}"]["waited_seconds"] for step in behind)
        longer = statistics.median(seconds[step] for step in behind) - usual
        shutil.rmtree(out)
        rows.append((size, dd(args, size, log), saves["checkpoint-13"]["seconds"], still, longer))
    return rows


def read_rate(threads):
    """Bytes a second at which two threads read memory: the best of ten sums over 1 GiB."""
    code = f"""
import time, torch
torch.set_num_threads({threads})
x = torch.ones(1 << 28)
best = 1e9
for _ in range(10):
    start = time.perf_counter(); x.sum(); best = min(best, time.perf_counter() - start)
print(x.numel() * 4 / best)"""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def measure_decode(args, model, log):
    """Per round (ours, theirs) in tokens a second of the decode alone; and whether the ids are the same."""
    peer = Side("transformers", [sys.executable, str(HERE / "decode_peer.py"), str(model), PROMPT, str(args.threads)], log)
    rows, same = [], True
    try:
        for _ in range(args.rounds):
            theirs = peer.go(args.tokens)
            events = plimsoll(args, log, "generate", "--model", model, "--prompt-ids", PROMPT, "--max-new-tokens", args.tokens,
                              "--temperature", 0, "--ignore-eos", "--threads", args.threads)
            ours = pick(events, "summary")[0]["decode_tokens_per_second"]
            same = same and pick(events, "generation")[0]["ids"] == theirs["ids"]
            rows.append((ours, theirs["tokens"] / theirs["seconds"], theirs["foreign_cores"]))
        peer.finish()
    finally:
        peer.stop()
    return rows, same


def page(run):
    loading, saving, decode = run["loading"], run["saving"], run["decode"]
    weights = loading[0][0]
    load_rate = statistics.median(size / seconds for size, seconds, _ in loading)
    startup = statistics.median(row[2] for row in loading)
    save_share = statistics.median(row[1] / row[2] for row in saving)
    still, longer = (statistics.median(row[i] for row in saving) for i in (3, 4))
    ratio = statistics.median(ours / theirs for ours, theirs, _ in decode)
    ours = statistics.median(row[0] for row in decode)
    floor = run["read_rate"] / weights
    rows = [
        ["loading", "GB/s, warm file cache", *against(load_rate / 1e9, 2.0)],
        ["loading", "start to step 1, less a step, s", *against(startup, 1.3, at_most=True)],
        ["saving", "share of dd's rate, training waiting", *against(save_share, 0.70)],
        ["saving", "written behind: training stands still, s", *against(still, 0.3, at_most=True)],
        ["saving", "written behind: that step is longer by, s", *against(longer, 0.3, at_most=True)],
        ["decode", "tokens/s against transformers", *against(ratio, 2.0)],
        ["decode", f"share of the floor ({floor:.1f} tokens/s)", *against(ours / floor, 0.70)],
    ]
    cpu = run["cpu"]
    return f"""{machine.title(f"Loading, saving, decoding, {run['date']}", run["commit"])}

Written by `{run["command"]}` at commit {run["commit"]}; every line the programs printed is in [{run["log_name"]}]({run["log_name"]}).

- Processor: {machine.named(cpu)}, {run["memory_bytes"] / (1 << 30):.1f} GiB; {" ".join(cpu["flags"])}
- The model: SmolLM-135M's shape (bench/step/w2), random weights, {weights / 1e6:.0f} MB in fp32; {run["threads"]} threads; load average at the start {run["load"]}
- Greedy ids of both programs: {"the same" if run["same"] else "different"}; memory is read at {run["read_rate"] / 1e9:.1f} GB/s

{table(["part", "figure", "measured", "goal", ""], rows)}

## Rounds

{table(["loading", "MB", "seconds", "GB/s", "start-up, s"], [["plimsoll", f"{b / 1e6:.0f}", f"{s:.3f}", f"{b / s / 1e9:.2f}", f"{u:.2f}"] for b, s, u in loading], left=1)}

{table(["saving", "MB", "dd, s", "plimsoll, s", "share", "still, s", "longer, s"], [["round", f"{b / 1e6:.0f}", f"{d:.2f}", f"{a:.2f}", f"{d / a:.2f}", f"{s:.4f}", f"{l:.2f}"] for b, d, a, s, l in saving], left=1)}

{table(["decode", "plimsoll, tok/s", "transformers, tok/s", "ratio", "foreign cores"], [["round", f"{o:.1f}", f"{t:.1f}", f"{o / t:.2f}", f"{f:.2f}"] for o, t, f in decode], left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-models", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128, help="new tokens of a decode round")
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, gigabytes=10)
    args = parser.parse_args()
    if args.rounds < 1 or args.tokens < 2:
        parser.error("--rounds must be 1 or more, --tokens 2 or more")
    with Workplace(args, "models", "bench/run-models") as work:
        progress("making the model")
        model = make_model(args, work.log)
        progress("decoding")
        rate = read_rate(args.threads)
        decode, same = measure_decode(args, model, work.log)
        progress("loading")
        loading = measure_loading(args, model, work.log)
        progress("saving")
        saving = measure_saving(args, model, work.log)
    work.publish(page(work.about | dict(memory_bytes=machine.memory_bytes("MemTotal"), threads=args.threads, loading=loading,
                                        saving=saving, decode=decode, same=same, read_rate=rate)))


if __name__ == "__main__":
    main()
