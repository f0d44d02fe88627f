#!/usr/bin/env python3
"""What offload to the host costs on a device behind a link: `runtime.device: discrete`, optimizer and activations on the host.

    offload-link.py [--binary build/plimsoll] [--cards h100,rtx5090] [--tokens 8192,16384,32768] [--layers 6]
                    [--activations 4] [KEY=VALUE…]

The link is as fast, relative to this machine's products, as a card's: bytes a second here = (bf16 products here, measured) x (the
card's link over its products). So its copies mostly sleep, and the kernels have both CPUs to themselves. W2's width (576, 9 heads,
3 for keys, MLP 1536) with fewer layers and words, bf16 products, AdamW, sequences of 512. For each number of tokens a step: the run
as it is, then with offload, in turns; seconds a step, the share kept, and from the queues' log (`plimsoll profile --queues`) how
much of the copies ran beside kernels. Both sides have the same --recompute.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

# Products of W2's shapes over bytes a second of the link, and where that is from.
CARDS = {
    "h100": (470.5e12 / 54.8e9, "470.5 TFLOP/s of bf16 products of 2048x1536x576 and 54.8 GB/s, measured (results, 2026-11-23)"),
    "rtx5090": (209.5e12 / 64e9, "209.5 TFLOP/s of bf16 products and 64 GB/s, data sheet"),
}


def sides(activations):
    of_layers = f"{{host: {activations}}}" if activations else "host"
    return {"without": ["memory.offload=none"],
            "with": [f"memory.offload={{optimizer: host, masters: host, activations: {of_layers}}}"]}


def events(command, folder):
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr[-800:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def product_rate(binary, folder):
    """The best bf16 product of `bench kernels`, operations a second."""
    rows = [row for row in events([binary, "bench", "kernels", "--json"], folder) if row.get("op") == "linear"]
    return 1e9 * max(row["gflops"] for row in rows if "bf16" in row["operands"] or all("bf16" not in r["operands"] for r in rows))


def run_file(given):
    return (f"model:\n  init: random\n  config: {{model_type: llama, architectures: [LlamaForCausalLM], hidden_size: {given.width}, "
            f"intermediate_size: {given.width * 8 // 3}, num_hidden_layers: {given.layers}, num_attention_heads: {given.width // 64}, "
            f"num_key_value_heads: {given.width // 192}, vocab_size: {given.words}, max_position_embeddings: 2048, rms_norm_eps: 1.0e-5, "
            "hidden_act: silu, tie_word_embeddings: true}\n"
            "data: {sequence_length: 512}\ntraining: {precision: bf16, max_steps: 100}\n"
            f"memory: {{recompute: {given.recompute}}}\nruntime: {{device: discrete, discrete: {{memory: 12GiB}}}}\n")


def profile(binary, folder, steps, settings):
    found = events([binary, "profile", "run.yaml", "--queues", "--json", "--wait=0", "--warmup=1", f"--active={steps}", *settings], folder)
    return next(e for e in found if e["event"] == "plan"), next(e for e in found if e["event"] == "queues")


def queue_text(queues):
    parts = []
    for queue in queues["queues"][1:]:
        if queue["seconds"] > 0:
            parts.append(f"{queue['queue']} {queue['bytes'] / 2**20:.0f} MiB in {queue['seconds']:.2f} s, "
                         f"{queue['beside_kernels_seconds'] / queue['seconds']:.1%} beside kernels")
    return "; ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--cards", default="h100,rtx5090")
    parser.add_argument("--tokens", default="8192,16384,32768", help="of a step")
    parser.add_argument("--micro-tokens", type=int, default=0, help="of a micro-batch; 0: as many as the step")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--activations", type=int, default=0, help="of so many layers, the first; 0: of all")
    parser.add_argument("--width", type=int, default=576)
    parser.add_argument("--words", type=int, default=8192)
    parser.add_argument("--recompute", default="full")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--flops", type=float, help="a second, of bf16 products here; measured where it is not given")
    parser.add_argument("settings", nargs="*")
    given = parser.parse_args()
    binary = str(pathlib.Path(given.binary).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "run.yaml").write_text(run_file(given))
        rate = given.flops or product_rate(binary, folder)
        print(f"products here: {rate / 1e9:.0f} GFLOP/s", flush=True)
        for card in given.cards.split(","):
            ratio, source = CARDS[card]
            link = rate / ratio
            print(f"{card}: {source}: {ratio:.0f} operations a byte, so a link of {link / 1e6:.1f} MB/s", flush=True)
            for tokens in map(int, given.tokens.split(",")):
                micro = min(given.micro_tokens or tokens, tokens)
                batch = [f"training.micro_batch_size={micro // 512}", f"training.gradient_accumulation_steps={tokens // micro}",
                         f"runtime.discrete.copy_bandwidth={link / 1e6:.3f}MB/s", *given.settings]
                results = {side: profile(binary, folder, given.steps, batch + settings) for side, settings in sides(given.activations).items()}
                seconds = {side: queues["step_seconds"] for side, (_, queues) in results.items()}
                peaks = {side: plan["device"]["peak_bytes"] / 2**20 for side, (plan, _) in results.items()}
                print(f"  {tokens} tokens in {tokens // micro}: without {seconds['without']:.2f} s and {peaks['without']:.0f} MiB, with "
                      f"{seconds['with']:.2f} s and {peaks['with']:.0f} MiB: {seconds['without'] / seconds['with']:.1%} of the speed; "
                      f"{queue_text(results['with'][1])}; waits {results['with'][1]['waiting_seconds']:.2f} s", flush=True)


if __name__ == "__main__":
    main()
