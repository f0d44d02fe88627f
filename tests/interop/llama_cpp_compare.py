"""Runs what `plimsoll export` writes in llama.cpp: the same greedy text, the same perplexity. By hand: llama-cpp-python
is no requirement of the project, since PyPI has its source alone (`pip install llama-cpp-python` compiles for minutes).

    python llama_cpp_compare.py --binary build/plimsoll [--only TEXT] [--threads N] [--keep DIR]

Small models of each family learn some of this repository's text, with a tokenizer trained on it. llama.cpp then opens
their GGUF in f32, tokenizes prompts, goes on with them greedily and scores a text: ids as Plimsoll's, perplexity within
1e-3 of it. One line per check, PASS or FAIL.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy

from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECODER = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
               vocab_size=640, max_position_embeddings=512, rms_norm_eps=1e-5, hidden_act="silu", initializer_range=0.08)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
FAMILIES = [
    ("llama", DECODER | dict(model_type="llama", head_dim=16, tie_word_embeddings=True), "llama3"),
    ("llama, rope llama3", DECODER | dict(model_type="llama", rope_theta=500000.0, rope_scaling=LLAMA3_ROPE,
                                          tie_word_embeddings=False), "smollm"),
    ("llama, rope linear, biases", DECODER | dict(model_type="llama", rope_scaling=dict(rope_type="linear", factor=2.0),
                                                  attention_bias=True, mlp_bias=True, tie_word_embeddings=False), "llama3"),
    ("mistral", DECODER | dict(model_type="mistral", sliding_window=None, tie_word_embeddings=False), "gpt2"),
    ("qwen2", DECODER | dict(model_type="qwen2", tie_word_embeddings=True), "qwen2"),
    ("qwen2, yarn", DECODER | dict(model_type="qwen2", tie_word_embeddings=False, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=128)), "qwen2"),
    ("qwen3", DECODER | dict(model_type="qwen3", head_dim=32, tie_word_embeddings=False), "qwen2"),
    ("smollm3", DECODER | dict(model_type="smollm3", num_hidden_layers=5, tie_word_embeddings=True, pad_token_id=None), "llama3"),
    ("gpt2", dict(model_type="gpt2", vocab_size=640, n_positions=512, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0,
                  embd_pdrop=0.0, attn_pdrop=0.0), "gpt2"),
]
PROMPTS = ["The plan ", "A checkpoint is", "memory", "In 1997 the loss\n\n  was 3.14"]
NEW_TOKENS = 24


def run(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], text=True, capture_output=True, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: exit code {done.returncode}: {done.stderr[-600:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def train(binary, config, pre, text, folder):
    run(binary, "data", "tokenizer", "--input", text, "--vocab-size", 600, "--pre-tokenizer", pre, "--special-token",
        "<|endoftext|>", "--output", folder / "tokenizer")
    (folder / "run.yaml").write_text(json.dumps(dict(
        model=dict(config=config, init="random"), data=dict(train=str(text), sequence_length=128, tokenizer=str(folder / "tokenizer")),
        training=dict(global_batch_size=16, max_steps=150, learning_rate=4e-3, warmup_steps=10), output=dict(dir=str(folder / "out")))))
    run(binary, "train", folder / "run.yaml", "--json")
    return folder / "out" / "final"


def perplexity(model, ids):
    """Mean of the next token's log-probability over the whole text, in one context."""
    model.reset()
    model.eval(ids)
    logits = numpy.array(model.scores[:len(ids) - 1], dtype=numpy.float64)
    top = logits.max(axis=1, keepdims=True)
    log_sum = numpy.log(numpy.exp(logits - top).sum(axis=1)) + top[:, 0]
    return math.exp(float((log_sum - logits[numpy.arange(len(ids) - 1), ids[1:]]).mean()))


def greedy(model, ids):
    model.reset()
    model.eval(ids)
    out = []
    while len(out) < NEW_TOKENS:
        out.append(int(numpy.argmax(model.scores[model.n_tokens - 1])))
        model.eval(out[-1:])
    return out


def compare(binary, name, config, pre, threads, folder):
    text = folder / "text.txt"
    text.write_text("\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))[:8])[:200_000])
    final = train(binary, config, pre, text, folder)
    file = folder / "model.gguf"
    run(binary, "export", "--model", final, "--format", "gguf", "--dtype", "f32", "--output", file, "--json")
    model = llama_cpp.Llama(str(file), n_ctx=512, n_batch=512, n_threads=threads, logits_all=True, verbose=False,
                            type_k=0, type_v=0)  # a cache in f32
    checks = []
    for prompt in PROMPTS:
        ours = run(binary, "generate", "--model", final, "--prompt", prompt, "--max-new-tokens", NEW_TOKENS, "--ignore-eos",
                   "--temperature", 0, "--json")
        event = next(e for e in ours if e.get("event") == "generation")
        ids = model.tokenize(prompt.encode(), add_bos=False, special=False)
        new = event.get("tokens", event.get("ids"))
        checks.append((f"{prompt!r} goes on", greedy(model, ids) == new, f"{len(ids)} + {len(new)} tokens"))
    held = text.read_text()[-1500:]
    (folder / "held.txt").write_text(held)
    ids = model.tokenize(held.encode(), add_bos=False, special=False)[:400]
    numpy.save(folder / "held.npy", numpy.array([ids], dtype=numpy.int32))
    events = run(binary, "eval", folder / "run.yaml", f"model.path={final}", "model.config=null", "model.init=auto",
                 f"data.eval={folder / 'held.npy'}", f"data.sequence_length={len(ids)}", "data.packing=stream",
                 "training.global_batch_size=1", "--json")
    ours = math.exp(next(e for e in events if e["event"] == "eval")["loss"])
    theirs = perplexity(model, ids)
    checks.append(("perplexity", abs(ours - theirs) <= 1e-3 * ours, f"{ours:.6f} here, {theirs:.6f} in llama.cpp"))
    return checks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="families whose name holds this text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", help="write models under this directory")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as temporary:
        for name, config, pre in FAMILIES:
            if arguments.only not in name:
                continue
            folder = pathlib.Path(arguments.keep or temporary) / name.replace(", ", "-").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            for what, ok, detail in compare(arguments.binary, name, config, pre, arguments.threads, folder):
                checks.check(name, what, ok, detail)
    print(f"{checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
