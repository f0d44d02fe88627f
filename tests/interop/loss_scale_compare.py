"""Holds fp16 training with a loss scale against torch.amp.GradScaler, with injected infinities and NaNs.

    python loss_scale_compare.py --binary build/plimsoll

Rows of the embedding hold an infinity and a NaN; the batches of some steps have these tokens, so the gradients of these
steps are not finite in either program. Scales, skipped steps and learning rates must be the same at every step, losses
within what fp16 allows; accumulation must not change when the scale moves.
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

from checks import Checks  # noqa: E402

LOSS_LIMIT = 2e-3
INFINITE, NOT_A_NUMBER = 5, 6  # tokens
STEPS, BATCH, TOKENS = 30, 4, 32
CONFIG = dict(model_type="llama", vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5,
              tie_word_embeddings=False)
CASES = {
    "clean, growing": dict(injected={}, scale=dict(init_scale=1024.0, growth_interval=4)),
    "infinities": dict(injected={4: INFINITE, 11: INFINITE, 12: INFINITE}, scale=dict(init_scale=1024.0, growth_interval=4)),
    "NaNs, odd factors": dict(injected={1: NOT_A_NUMBER, 8: NOT_A_NUMBER, 9: INFINITE},
                              scale=dict(init_scale=700.0, growth_factor=3.0, backoff_factor=0.3, growth_interval=3)),
    "accumulated": dict(injected={3: INFINITE, 17: NOT_A_NUMBER}, micro=1, scale=dict(init_scale=4096.0, growth_interval=5)),
}


def write_inputs(folder, case):
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**CONFIG), attn_implementation="eager")
    with torch.no_grad():
        model.model.embed_tokens.weight[INFINITE] = math.inf
        model.model.embed_tokens.weight[NOT_A_NUMBER] = math.nan
    model.save_pretrained(folder / "model")
    rows = numpy.random.default_rng(7).integers(10, CONFIG["vocab_size"], (STEPS * BATCH, TOKENS)).astype(numpy.int32)
    for step, token in case["injected"].items():
        rows[(step - 1) * BATCH + 2, 9] = token
    numpy.save(folder / "rows.npy", rows)
    run = {"model": {"path": str(folder / "model")},
           "data": {"train": str(folder / "rows.npy"), "sequence_length": TOKENS, "shuffle": False},
           "training": {"precision": "fp16", "loss_scale": case["scale"], "global_batch_size": BATCH, "max_steps": STEPS,
                        "learning_rate": 2e-3, "lr_scheduler": "linear", "warmup_steps": 3, "weight_decay": 0.0,
                        "micro_batch_size": case.get("micro", BATCH)},
           "runtime": {"threads": 2}, "output": {"dir": str(folder / "out")}}
    (folder / "run.yaml").write_text(json.dumps(run))
    return rows


def ours(binary, folder):
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"train left with {done.returncode}: {done.stderr}")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [e for e in events if e["event"] == "step"]


def theirs(folder, case, rows):
    """(loss, scale that it was multiplied with, skipped, rate) of each step."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", attn_implementation="eager").float().train()
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    schedule = transformers.optimization.get_linear_schedule_with_warmup(optimizer, 3, STEPS)
    scaler = torch.amp.GradScaler("cpu", **case["scale"])
    micro, steps = case.get("micro", BATCH), []
    for step in range(STEPS):
        ids = torch.from_numpy(rows[step * BATCH:(step + 1) * BATCH].astype(numpy.int64))
        optimizer.zero_grad(set_to_none=True)
        total, scale, rate = 0.0, scaler.get_scale(), optimizer.param_groups[0]["lr"]
        for part in ids.split(micro):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = model(input_ids=part, labels=part).loss * len(part) / BATCH
            total += loss.item()
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        skipped = any(not torch.isfinite(p.grad).all() for p in model.parameters())
        scaler.update()
        if not skipped:
            schedule.step()
        steps.append((total, scale, skipped, rate))
    return steps


def compare(name, case, binary, folder, checks):
    folder.mkdir()
    rows = write_inputs(folder, case)
    mine, reference = ours(binary, folder), theirs(folder, case, rows)
    scales = [(e["loss_scale"], scale) for e, (_, scale, _, _) in zip(mine, reference)]
    checks.check(name, "scales", all(a == numpy.float32(b) for a, b in scales),
                 f"{len(set(b for _, b in scales))} different ones, the last {scales[-1][1]:g}")
    skips = [bool(e["skipped"]) for e in mine]
    checks.check(name, "skipped steps", skips == [skipped for _, _, skipped, _ in reference] and
                 {i + 1 for i, s in enumerate(skips) if s} == set(case["injected"]), f"{sum(skips)} of {STEPS}")
    checks.worst(name, "learning rates", [(abs(e["learning_rate"] - rate), 1e-9, f"step {e['step']}")
                                          for e, (_, _, _, rate) in zip(mine, reference)])
    checks.check(name, "losses that are no numbers", [e["loss"] is None for e in mine] ==
                 [not math.isfinite(loss) for loss, _, _, _ in reference], "null in both")
    checks.worst(name, "losses", [(abs(e["loss"] - loss) / loss, LOSS_LIMIT, f"step {e['step']}")
                                  for e, (loss, _, _, _) in zip(mine, reference) if e["loss"] is not None])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    args = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, case) in enumerate(CASES.items()):
            compare(name, case, os.path.abspath(args.binary), pathlib.Path(scratch).resolve() / f"{number:02d}", checks)
    print(f"loss scale: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
