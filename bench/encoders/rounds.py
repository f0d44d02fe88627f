"""One optimizer step of BERT-base with three heads beside transformers' in PyTorch, in turn.

    bench/run-encoders [--only classify,masked,answers] [--precision fp32,bf16] [--modes eager,compiled] [--rounds 3] [--threads 2]

Rows have no padding, dropout is on. A ratio is the median of the rounds' own. Peaks are the kernel's VmHWM.
"""
import argparse
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

from processes import Side  # noqa: E402
from report import MIB, against, paired_ratio, rate, spread, table  # noqa: E402
from turns import take_turns  # noqa: E402
from workplace import Workplace, add_arguments, opening  # noqa: E402

BERT = dict(model_type="bert", vocab_size=30522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
            hidden_act="gelu", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, max_position_embeddings=512, type_vocab_size=2,
            layer_norm_eps=1e-12, pad_token_id=0, initializer_range=0.02)
# Goals: the factor of PyTorch's tokens/s by mode and precision, and the share of its eager peak.
WORKS = {
    "classify": dict(task="sequence_classification", head="BertForSequenceClassification", batch=32, tokens=128,
                     goals={"eager fp32": 2.5, "compiled fp32": 2.2, "eager bf16": 2.2}, memory=0.50),
    "masked": dict(task="masked_lm", head="BertForMaskedLM", batch=32, tokens=128, goals={"eager fp32": 3.0}, memory=0.45),
    "answers": dict(task="question_answering", head="BertForQuestionAnswering", batch=12, tokens=384, goals={"eager fp32": 2.6}, memory=0.50),
}


def write_inputs(args, name):
    """config.json, and the run file. `bench step` draws its tokens; a classifier reads from the data which labels there are."""
    work, folder = WORKS[name], args.work / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(BERT, architectures=[work["head"]], num_labels=2)))
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps({"text": "a", "label": label}) + "\n" for label in range(2)))
    run = folder / "run.yaml"
    run.write_text(json.dumps({
        "task": work["task"], "model": {"path": str(folder), "init": "random"},
        "data": {"train": str(data), "sequence_length": work["tokens"]},
        "training": {"global_batch_size": work["batch"], "max_steps": 1000, "learning_rate": 3e-4},
        "output": {"dir": str(folder / "out")}}))
    return run


def sides(args, name, precision, run, log):
    work = WORKS[name]
    ours = [args.binary, "bench", "step", run, f"training.precision={precision}", f"runtime.threads={args.threads}", "--json", "--interactive"]
    theirs = [sys.executable, HERE / "peer.py", "--config", run.parent / "config.json", "--task", name, "--batch", work["batch"],
              "--tokens", work["tokens"], "--precision", precision, "--threads", args.threads]
    return [Side("plimsoll", [str(word) for word in ours], log),
            *(Side(mode, [str(word) for word in [*theirs, "--mode", mode]], log) for mode in args.modes)]


def measure(args, name, precision, log):
    run = args.work / name / "run.yaml"
    each = sides(args, name, precision, run if run.exists() else write_inputs(args, name), log)
    return take_turns(each, args.rounds, args.steps, f"{name} in {precision}")


def goal_rows(results):
    for (name, precision), result in results.items():
        work = WORKS[name]
        for mode in (side for side in result["rounds"] if side != "plimsoll"):
            goal = work["goals"].get(f"{mode} {precision}")
            yield [name, precision, f"tokens/s against {mode}", *against(paired_ratio(result["rounds"], mode), goal)]
            share = result["peaks"]["plimsoll"] / result["peaks"][mode]
            yield [name, precision, f"peak memory against {mode}", *against(share, work["memory"] if mode == "eager" else None, at_most=True)]
        yield [name, precision, "measured peak over planned", *against(result["peaks"]["plimsoll"] / result["planned"], 1, at_most=True)]


def round_rows(results):
    for (name, precision), result in results.items():
        for side, rounds in result["rounds"].items():
            foreign = statistics.median(event["foreign_cores"] for event in rounds)
            yield [name, precision, side, *spread([rate(event) for event in rounds]), f"{result['peaks'][side] / MIB:,.0f}", f"{foreign:.2f}"]


def page(about, args, results):
    conditions = (f"BERT-base; 32 rows of 128 tokens to classify or with masked tokens, 12 of 384 with answers; AdamW, clipping, dropout 0.1, "
                  f"{args.threads} threads")
    return f"""{opening(about, "A training step of an encoder against PyTorch", conditions)}
- PyTorch: transformers' heads with SDPA; ratios are the median of the rounds' own, peaks the kernel's VmHWM

## Goals

{table(["head", "precision", "figure", "measured", "goal", ""], list(goal_rows(results)), left=3)}

## Rounds

{table(["head", "precision", "side", "tokens/s", "between", "peak, MiB", "foreign cores"], list(round_rows(results)), left=3)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-encoders", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(WORKS), help="heads, comma separated")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--modes", default="eager", type=lambda text: text.split(","), help="PyTorch's, comma separated: eager, compiled")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1, help="of a side in a round")
    parser.add_argument("--threads", type=int, default=2)
    add_arguments(parser, 1)
    args = parser.parse_args()
    with Workplace(args, "encoders", "bench/run-encoders") as place:
        results = {(name, precision): measure(args, name, precision, place.log)
                   for name in args.only.split(",") for precision in args.precision.split(",")}
        place.publish(page(place.about, args, results))


if __name__ == "__main__":
    main()
