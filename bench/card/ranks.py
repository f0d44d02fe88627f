"""Two ranks that train on cards beside one rank: losses within rounding, the same weights in each mode. A table in Markdown.

    python3 ranks.py PROGRAM FOLDER

Where a machine has one card both ranks share it and exchange through their host; where it has more, each takes its own, and they
exchange through NCCL too. Exit code: 1 where a run failed, losses differ, or weights do.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

RUN = """
model:
  config: {model_type: llama, vocab_size: 1000, hidden_size: 64, intermediate_size: 320, num_hidden_layers: 2, num_attention_heads: 2,
    num_key_value_heads: 1, head_dim: 32, max_position_embeddings: 128, rms_norm_eps: 1.0e-5}
  init: random
data: {train: train.txt, tokenizer: bytes, sequence_length: 64}
training: {global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3, max_grad_norm: 0.1, seed: 5, logging_steps: 1, eval_strategy: no}
memory: {device_budget: 2GiB}
runtime: {threads: 1}
"""
WORDS = "budget gradient layer memory plan rank step weight".split()
MODES = ["ddp", "zero1", "zero2", "zero3"]
APART = 1e-5  # of losses, relative
SECONDS = 300


def num_cards():
    played = os.environ.get("PLIMSOLL_FAKE_CARDS")
    if played or shutil.which("nvidia-smi") is None:
        return int(played or 1)
    told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return max(1, sum(line.startswith("GPU ") for line in told.stdout.splitlines()))


def train(program, folder, ranks, settings):
    """(losses, the weights' digest, seconds) of a run, or what it said last."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    command = ["train", "run.yaml", "--json", "output.dir=out", *settings]
    if ranks > 1:
        command = ["launch", "--ranks", str(ranks), "--", *command]
    started = time.monotonic()
    try:
        told = subprocess.run([program, *command], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if told.returncode != 0:
        return f"exit code {told.returncode}: {(told.stderr.strip().splitlines() or [''])[-1]}"
    events = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    weights = (folder / "out/final/model.safetensors").read_bytes()
    losses = [event["loss"] for event in events if event.get("event") == "step"]
    return losses, hashlib.sha256(weights).hexdigest()[:12], time.monotonic() - started


def ways():
    """(what the table calls it, settings) of each run of two ranks."""
    cards = num_cards()
    device = "runtime.device=cuda" if cards > 1 else "runtime.device=cuda:0"
    for transport in ["shm", *(["nccl"] if cards > 1 else [])]:
        for mode in MODES:
            yield f"{mode}, {transport}", [device, f"distributed.mode={mode}", f"distributed.transport={transport}"]


def differs(losses, others):
    return len(losses) != len(others) or any(abs(a - b) > APART * abs(b) for a, b in zip(losses, others))


def main():
    program, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(RUN)
    (folder / "train.txt").write_text(" ".join(WORDS[(i * i + i // 7) % len(WORDS)] for i in range(9000)))
    print("| ranks | last loss | weights | s | |\n| --- | --: | --- | --: | --- |", flush=True)
    alone, together, failed = None, None, False
    for ranks, name, settings in [(1, "one rank", ["runtime.device=cuda"]), *((2, *way) for way in ways())]:
        result = train(program, folder, ranks, settings)
        if isinstance(result, str):
            failed = True
            print(f"| {name} | | | | {result} |", flush=True)
            continue
        losses, digest, seconds = result
        alone, together = alone or losses, together or (digest if ranks > 1 else None)
        faults = ["other losses than one rank's"] * differs(losses, alone) + ["other weights"] * (ranks > 1 and digest != together)
        failed = failed or bool(faults)
        print(f"| {name} | {losses[-1] if losses else '–'} | {digest} | {seconds:.1f} | {', '.join(faults)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
