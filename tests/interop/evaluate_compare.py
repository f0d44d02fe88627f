"""Holds `plimsoll eval` against transformers: the loss of directories that save_pretrained wrote, on held-out tokens.

    python evaluate_compare.py --binary build/plimsoll

Each model is written by transformers with random weights, in one file or in shards. The reference is the mean
cross-entropy over all targets, the short last sequence included. One line per check, PASS or FAIL; exit code 1 if
any fails.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

TOLERANCE = 1e-5  # relative, of the loss and of the perplexity
TOKENS = 31

SMALL = dict(vocab_size=211, hidden_size=60, intermediate_size=77, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=1, head_dim=20, max_position_embeddings=128, initializer_range=0.1)
MODELS = {
    "llama": (transformers.LlamaConfig(**SMALL), {}),
    "llama, tied, sharded": (transformers.LlamaConfig(**SMALL, tie_word_embeddings=True), dict(max_shard_size="40KB")),
    "gpt2": (transformers.GPT2Config(vocab_size=211, n_positions=128, n_embd=60, n_layer=2, n_head=3,
                                     initializer_range=0.1), {}),
}


def reference(model, rows):
    """Mean over all targets of the cross-entropy, in double from fp32 logits."""
    total = count = 0
    for row in rows:
        ids = torch.from_numpy(row.astype(numpy.int64))[None]
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        count += ids.shape[1] - 1
    return total / count


def evaluate(binary, folder, settings):
    command = [binary, "eval", str(folder / "run.yaml"), "--json", *settings]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "eval")


def compare(name, config, save, binary, folder):
    """Yields (what, ok, detail)."""
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    model.save_pretrained(folder / "model", **save)
    stream = numpy.random.default_rng(7).integers(0, config.vocab_size, 9 * TOKENS + 12, dtype=numpy.int32)
    numpy.save(folder / "eval.npy", stream)
    rows = [stream[begin:begin + TOKENS] for begin in range(0, len(stream), TOKENS)]
    run = {"model": {"path": str(folder / "model")}, "data": {"eval": str(folder / "eval.npy"), "sequence_length": TOKENS},
           "training": {"global_batch_size": 4}, "runtime": {"threads": 2}, "output": {"dir": str(folder / "out")}}
    (folder / "run.yaml").write_text(json.dumps(run))
    expected = reference(model, rows)
    for micro in (1, 4):
        event = evaluate(binary, folder, [f"training.micro_batch_size={micro}"])
        off = abs(event["loss"] - expected) / expected
        yield f"loss, micro-batch {micro}", off <= TOLERANCE, f"{event['loss']:.9f}, transformers {expected:.9f}"
        off = abs(event["perplexity"] - math.exp(expected)) / math.exp(expected)
        yield f"perplexity, micro-batch {micro}", off <= TOLERANCE, f"{off:.1e} apart"
        yield f"tokens, micro-batch {micro}", event["tokens"] == len(stream), str(event["tokens"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    args = parser.parse_args()
    failed = 0
    for name, (config, save) in MODELS.items():
        with tempfile.TemporaryDirectory(prefix="plimsoll-eval-") as folder:
            try:
                for what, ok, detail in compare(name, config, save, os.path.abspath(args.binary), pathlib.Path(folder)):
                    print(f"{'PASS' if ok else 'FAIL'} eval {name}: {what}: {detail}", flush=True)
                    failed += not ok
            except Exception as error:  # a case that cannot run is a failure, and the others still run
                print(f"FAIL eval {name}: {error}", flush=True)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
