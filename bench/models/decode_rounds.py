"""Decoding a model of SmolLM-135M's shape (W2) in fp32 and bf16, each beside transformers in the same, in turn.

    bench/run-generate [--rounds 5] [--tokens 128] [--work FOLDER]

One prompt of 32 tokens, greedy; figures are of the decode alone, prefill taken off. In each round all four take their turn; ratios are of one
round's figures. The floor is the weights' bytes over the memory's read rate.
"""
import argparse
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "step"))  # behind this folder: both have rounds.py

import machine  # noqa: E402
from processes import Side  # noqa: E402
from report import against, table  # noqa: E402
from rounds import PROMPT, make_model, pick, plimsoll, read_rate  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

DTYPES = ("fp32", "bf16")


def decode(args, model, dtype, log):
    """(tokens a second, ids, planned and measured bytes) of our process."""
    events = plimsoll(args, log, "generate", "--model", model, "--prompt-ids", PROMPT, "--max-new-tokens", args.tokens,
                      "--temperature", 0, "--ignore-eos", "--threads", args.threads, "--dtype", dtype)
    summary = pick(events, "summary")[0]
    return (summary["decode_tokens_per_second"], pick(events, "generation")[0]["tokens"], summary["planned_peak_bytes"],
            summary["measured_peak_bytes"])


def measure(args, model, log):
    """A dict a round: tokens a second by (side, dtype); foreign cores; whether fp32's ids are transformers'."""
    peers = {dtype: Side(f"transformers-{dtype}", [sys.executable, str(HERE / "decode_peer.py"), str(model), PROMPT,
                                                   str(args.threads), dtype], log) for dtype in DTYPES}
    rows = []
    try:
        for number in range(args.rounds + 1):  # the first warms up
            row = {}
            for dtype in DTYPES:
                rate, ids, planned, peak = decode(args, model, dtype, log)
                theirs = peers[dtype].go(args.tokens)
                row |= {("plimsoll", dtype): rate, ("transformers", dtype): theirs["tokens"] / theirs["seconds"],
                        ("same", dtype): ids == theirs["ids"], ("memory", dtype): (planned, peak)}
                row["foreign"] = max(row.get("foreign", 0), theirs["foreign_cores"])
            if number > 0:
                rows.append(row)
        for peer in peers.values():
            peer.finish()
    finally:
        for peer in peers.values():
            peer.stop()
    return rows


def page(run):
    rows = run["rows"]

    def ratio(a, b):
        return statistics.median(row[a] / row[b] for row in rows)

    ours, bf16, theirs = ("plimsoll", "fp32"), ("plimsoll", "bf16"), ("transformers", "bf16")
    floor = run["read_rate"] / (2 * run["parameters"])
    figures = [
        ["bf16 against our fp32", *against(ratio(bf16, ours), 1.7)],
        ["bf16 against transformers' bf16", *against(ratio(bf16, theirs), 2.5)],
        ["fp32 against transformers' fp32", *against(ratio(ours, ("transformers", "fp32")), 2.0)],
        [f"share of the floor of bf16 ({floor:.1f} tokens/s)", f"{statistics.median(row[bf16] for row in rows) / floor:.2f}", "", ""],
    ]
    sides = [(side, dtype) for side in ("plimsoll", "transformers") for dtype in DTYPES]
    memory = [[dtype, *(f"{value / 1e6:.1f}" for value in rows[-1]["memory", dtype])] for dtype in DTYPES]
    cpu = run["cpu"]
    same = all(row["same", "fp32"] for row in rows)
    return f"""{machine.title(f"Decoding in fp32 and bf16, {run['date']}", run["commit"])}

Written by `{run["command"]}` at commit {run["commit"]}; every line the programs printed is in [{run["log_name"]}]({run["log_name"]}).

- Processor: {machine.named(cpu)}; {" ".join(cpu["flags"])}
- The model: SmolLM-135M's shape (bench/step/w2), random weights; {run["threads"]} threads; load average at the start {run["load"]}
- Greedy ids in fp32 of both programs: {"the same" if same else "different"}; memory is read at {run["read_rate"] / 1e9:.1f} GB/s

{table(["decode, median of rounds", "measured", "goal", ""], figures, left=1)}

{table(["memory", "planned, MB", "measured, MB"], memory, left=1)}

## Rounds

{table(["tokens/s", *(" ".join(side) for side in sides), "foreign cores"], [[f"{i + 1}", *(f"{row[side]:.1f}" for side in sides), f"{row['foreign']:.2f}"] for i, row in enumerate(rows)], left=1)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-generate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128, help="new tokens of a round")
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, gigabytes=2)
    args = parser.parse_args()
    if args.rounds < 1 or args.tokens < 2:
        parser.error("--rounds must be 1 or more, --tokens 2 or more")
    with Workplace(args, "generate", "bench/run-generate") as work:
        progress("making the model")
        model = make_model(args, work.log)
        parameters = (model / "model.safetensors").stat().st_size // 4
        progress("decoding")
        rate = read_rate(args.threads)
        rows = measure(args, model, work.log)
    work.publish(page(work.about | dict(threads=args.threads, rows=rows, read_rate=rate, parameters=parameters)))


if __name__ == "__main__":
    main()
