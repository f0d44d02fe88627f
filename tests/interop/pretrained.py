"""Model directories written by transformers, and Plimsoll's own opened by it.

A case with `pretrained` starts from weights that save_pretrained wrote: in one file or in shards, in fp32, bf16 or
fp16, with the names of the whole model or of the bare one. What is loaded must be those weights to the last bit, and
`final/` must open in transformers with the parameters that were dumped and the logits that Plimsoll has for them.
"""
import json
import shutil
import subprocess

import numpy
import safetensors.torch
import torch
import transformers

LOGITS_TOLERANCE = 1e-6     # of the logits' norm, between two programs that read the same exported weights


def write(case, folder):
    """The model of case["config"] with random weights, as case["pretrained"] says: dtype, shard, bare."""
    how = case["pretrained"]
    scratch = folder.parent / (folder.name + "-config")
    scratch.mkdir()
    (scratch / "config.json").write_text(json.dumps(case["config"]))
    config = transformers.AutoConfig.from_pretrained(scratch)
    torch.manual_seed(sum(map(ord, case["name"])))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():  # norms and biases off their round values
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.to(getattr(torch, how.get("dtype", "float32"))).save_pretrained(folder, max_shard_size=how.get("shard", "5GB"))
    if how.get("bare"):
        strip_prefix(folder / "model.safetensors", model.base_model_prefix + ".")
    shutil.rmtree(scratch)


def strip_prefix(path, prefix):
    """The names as in checkpoints of the model without a head."""
    tensors = safetensors.torch.load_file(path)
    safetensors.torch.save_file({name.removeprefix(prefix): value for name, value in tensors.items()}, path, {"format": "pt"})


def weights_of(folder):
    """The directory's parameters as transformers reads them, in fp32, by name."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().eval()
    return model, {name: p.detach().numpy() for name, p in model.named_parameters()}


def differing(ours, theirs):
    return sorted(ours.keys() ^ theirs.keys()) + sorted(
        name for name in ours.keys() & theirs.keys() if not numpy.array_equal(ours[name], theirs[name]))


def check_start(case, folder, initial, checks):
    how = case["pretrained"]
    files = sorted(path.name for path in (folder / "model").glob("*.safetensors"))
    checks.check(case["name"], "written as asked for", (len(files) > 1) == ("shard" in how), f"{len(files)} files")
    _, theirs = weights_of(folder / "model")
    wrong = differing(initial, theirs)
    checks.check(case["name"], "loaded weights", not wrong, f"{len(theirs)} tensors to the last bit, differing {wrong[:3]}")


def check_final(case, binary, folder, rows, parameters, checks):
    """`parameters`: as dumped after the last step."""
    name, final = case["name"], folder / "out" / "final"
    declared = transformers.AutoConfig.from_pretrained(final)
    original = transformers.AutoConfig.from_pretrained(folder / "model")
    ignored = {"dtype", "transformers_version", "_name_or_path", "architectures"}
    changed = sorted(key for key, value in original.to_dict().items()
                     if key not in ignored and declared.to_dict().get(key) != value)
    checks.check(name, "exported config", not changed, f"differing {changed[:3]}")
    opened = transformers.AutoModelForCausalLM.from_pretrained(final)
    checks.check(name, "exported dtype", opened.dtype == torch.float32, str(opened.dtype))
    model, theirs = weights_of(final)
    wrong = differing(parameters, theirs)
    checks.check(name, "exported weights", not wrong, f"{len(theirs)} tensors to the last bit, differing {wrong[:3]}")
    ours = logits_of(binary, folder, final, case)
    with torch.no_grad():
        reference = model(input_ids=torch.from_numpy(rows[:case["batch"]].astype(numpy.int64))).logits.numpy()
    distance = float(numpy.linalg.norm((ours - reference).ravel().astype(numpy.float64)))
    limit = LOGITS_TOLERANCE * float(numpy.linalg.norm(reference.ravel().astype(numpy.float64)))
    checks.check(name, "exported logits", distance <= limit, f"{distance:.2e} of {limit:.2e}")


def logits_of(binary, folder, model, case):
    """Plimsoll's logits of a directory's weights: those of a first step, which are taken before its update."""
    run = {
        "model": {"path": str(model), "init": "pretrained"},
        "data": {"train": str(folder / "tokens.npy"), "sequence_length": case["tokens"], "shuffle": False},
        "training": {"global_batch_size": case["batch"], "max_steps": 1, "learning_rate": 1e-3},
        "runtime": {"device": "cpu", "threads": 2},
        "output": {"dir": str(folder / "again")},
        "debug": {"dump_dir": str(folder / "again-dump"), "dump": ["logits"]},
    }
    (folder / "again.yaml").write_text(json.dumps(run))
    done = subprocess.run([binary, "train", str(folder / "again.yaml"), "--json"], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"of the exported model: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return safetensors.torch.load_file(folder / "again-dump" / "step-000001.safetensors")["logits"].numpy()
