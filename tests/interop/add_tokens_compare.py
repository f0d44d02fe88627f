"""Holds models that `plimsoll add-tokens` enlarged against transformers: rows, logits, ids; then trains one.

    python add_tokens_compare.py [--binary build/plimsoll]

One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
from checks import Checks  # noqa: E402

ROWS = 400


def write_model(folder, sample, dtype):
    config = transformers.AutoConfig.for_model(**sample | dict(vocab_size=ROWS))
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype)
    model.save_pretrained(folder)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(["the ship is loaded"] * 10, tokenizers.trainers.BpeTrainer(
        vocab_size=ROWS, show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([f"<{i}>" for i in range(ROWS - tokenizer.get_vocab_size())])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return model


def run(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")


def compare(checks, case, before, after, tolerance):
    for what in ("get_input_embeddings", "get_output_embeddings"):
        old, new = getattr(before, what)().weight.float(), getattr(after, what)().weight.float()
        checks.check(case, f"{what}: old rows", torch.equal(old, new[:ROWS]), tuple(new.shape))
        distance = (new[ROWS:] - old.mean(0)).abs().max().item()
        checks.check(case, f"{what}: new rows", distance <= tolerance, f"{distance:.1e} of the mean, {tolerance:.1e} at most")
    ids = torch.arange(40)[None]
    with torch.no_grad():
        old, new = before.eval()(ids).logits.float(), after.eval()(ids).logits.float()
    distance, limit = (old - new[..., :ROWS]).abs().max().item(), (1e-5 if before.dtype == torch.float32 else 2e-2) * old.abs().max().item()
    checks.check(case, "logits of old tokens", distance <= limit, f"{distance:.1e}, {limit:.1e} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    args = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name, sample in cases.FAMILIES.items():
            for dtype, tolerance in ((torch.float32, 1e-8), (torch.bfloat16, 1e-4)):
                case = f"{name} {dtype}"
                model, output = scratch / case, scratch / f"{case} more"
                model.mkdir()
                before = write_model(model, sample, dtype)
                run(args.binary, "add-tokens", "--model", model, "--special-token", "<|a|>", "--token", "shipshape",
                    "--multiple-of", 8, "--output", output)
                after = transformers.AutoModelForCausalLM.from_pretrained(output, dtype=dtype)
                compare(checks, case, before, after, tolerance)
                ids = transformers.AutoTokenizer.from_pretrained(output)("x<|a|>shipshape").input_ids[-2:]
                checks.check(case, "ids", ids[0] == ids[1] + 1 and ids[1] >= ROWS, ids)
            (scratch / "text.txt").write_text("the <|a|> is shipshape\n" * 200)
            (scratch / "run.yaml").write_text(
                f"model: {{path: '{output}'}}\ndata: {{train: '{scratch}/text.txt', sequence_length: 16}}\n"
                f"training: {{max_steps: 2, global_batch_size: 2}}\noutput: {{dir: '{scratch}/{name} out'}}\n")
            run(args.binary, "train", scratch / "run.yaml", "--json")
            trained = transformers.AutoModelForCausalLM.from_pretrained(scratch / f"{name} out/final")
            rows = trained.get_input_embeddings().weight.shape[0]
            checks.check(name, "trained", rows == ROWS + 8, f"{rows} rows")
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
