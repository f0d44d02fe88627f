"""Holds LoRA against PEFT: its adapters in, ten steps alongside, ours out, merged.

    python lora_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Each case begins with an adapter that PEFT wrote with random B, or with Plimsoll's own first values. Per step, from the parameters
that Plimsoll had before it: loss, logits and gradients are PEFT's. From step 0 on PyTorch takes the same ten steps alongside. PEFT
then opens final/, and its tensors are those of the last step. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
from checks import Checks  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()

BATCH, TOKENS, STEPS = 3, 23, 10
RATE, CLIP = 3e-3, 0.5
LOSS, LOGITS, GRADIENT, MERGED = 1e-5, 1e-5, 2e-4, 1e-5
LABELS = 3
FAMILIES = {
    "llama": cases.LLAMA | dict(num_key_value_heads=1), "mistral": cases.MISTRAL, "qwen2": cases.QWEN2, "qwen3": cases.QWEN3,
    "smollm3": cases.SMOLLM3, "gpt2": cases.GPT2, "tied": cases.LLAMA | dict(tie_word_embeddings=True),
    "biases": cases.LLAMA | dict(attention_bias=True, mlp_bias=True),
} | cases.ENCODERS


def case(name, family, lora, classifies=False, own=False, merges=True, logits=LOGITS, added=0, embeddings=False, **settings):
    """`lora`: LoraConfig's arguments. `own`: Plimsoll makes the adapter by them, instead of PEFT. `logits`: their bound.
    `added`: tokens by which the base was resized before. `embeddings`: PEFT saves them, too, with values of their own."""
    return dict(name=name, family=family, lora=lora, classifies=classifies, own=own, merges=merges, logits=logits, added=added,
                embeddings=embeddings, settings=settings)


CASES = [
    case("llama, PEFT's defaults", "llama", {}),
    case("llama, all linear, rank-stabilised", "llama", dict(r=4, lora_alpha=6, target_modules="all-linear", use_rslora=True)),
    case("llama, our own first values", "llama", dict(r=4, target_modules=["q_proj", "k_proj", "o_proj", "down_proj"]), own=True),
    case("mistral, patterns of ranks and alphas", "mistral", dict(
        r=4, target_modules=r".*\.(q|v|up)_proj", rank_pattern={"q_proj": 7, r"layers\.1\.mlp\.up_proj": 2},
        alpha_pattern={"v_proj": 32})),
    case("qwen2, one layer, excluded, modules to save", "qwen2", dict(
        r=5, target_modules=["q_proj", "k_proj", "v_proj", "gate_proj"], exclude_modules=["k_proj"], layers_to_transform=[0, 2],
        layers_pattern="layers", modules_to_save=["lm_head", "embed_tokens"])),
    case("qwen3, accumulation", "qwen3", dict(r=3, target_modules="all-linear"), micro_batch_size=1),
    case("biases of adapted modules", "biases", dict(r=4, target_modules=["q_proj", "down_proj"], bias="lora_only")),
    case("all biases", "biases", dict(r=4, target_modules=["v_proj"], bias="all")),
    case("smollm3, the head too", "smollm3", dict(r=3, target_modules=["v_proj", "lm_head"])),
    case("tied llama, recomputed", "tied", dict(r=2, target_modules="all-linear"), recompute="full"),
    case("gpt2", "gpt2", dict(r=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    case("llama classifies", "llama", dict(r=4, modules_to_save=["score"]), classifies=True),
    case("gpt2 classifies, all linear", "gpt2", dict(r=4, target_modules="all-linear", fan_in_fan_out=True), classifies=True),
    case("qwen2, our own, classifies", "qwen2", dict(r=4, target_modules="all-linear"), classifies=True, own=True),
    case("bert classifies, PEFT's defaults", "bert", {}, classifies=True),
    case("bert, the pooler is saved", "bert", dict(r=4, target_modules=["query", "key", "dense"], exclude_modules=["pooler.dense"],
                                                   modules_to_save=["pooler"]), classifies=True),
    case("roberta classifies, PEFT's defaults", "roberta", {}, classifies=True),
    case("distilbert, our own, classifies", "distilbert", dict(r=4, target_modules=["q_lin", "v_lin", "lin1"]), classifies=True, own=True),
    case("modernbert classifies", "modernbert", dict(r=4, target_modules=["Wqkv", "Wo", "Wi"]), classifies=True),
    case("DoRA", "llama", dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"], use_dora=True)),
    case("DoRA, all linear maps, with biases, accumulation", "biases", dict(r=3, target_modules="all-linear", use_dora=True),
         micro_batch_size=1),
    case("DoRA, gpt2", "gpt2", dict(r=4, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, use_dora=True)),
    case("DoRA, our own, recomputed", "qwen3", dict(r=4, target_modules="all-linear", use_dora=True), own=True, recompute="full"),
    case("a bias for B", "biases", dict(r=4, lora_alpha=6, target_modules=["q_proj", "up_proj"], lora_bias=True),
         micro_batch_size=1),
    case("an embedding", "llama", dict(r=4, lora_alpha=6, target_modules=["q_proj", "embed_tokens"]), micro_batch_size=1),
    case("an embedding, our own", "qwen2", dict(r=4, target_modules=["v_proj", "embed_tokens"]), own=True),
    case("gpt2, positions", "gpt2", dict(r=4, target_modules=["c_attn", "wpe"], fan_in_fan_out=True)),
    case("tied, embedding and head", "tied", dict(r=4, target_modules=["q_proj", "embed_tokens", "lm_head"]), merges=False),
    case("rows of tokens", "llama", dict(r=4, target_modules=["q_proj"], trainable_token_indices=[3, 7, 50]), micro_batch_size=1),
    case("rows of tokens, our own", "llama", dict(r=4, target_modules=["q_proj"], trainable_token_indices=[5, 9]), own=True),
    # PyTorch's fp32 decomposition of a 60 x 60 matrix is 5e-6 off the exact one, which the base has lost here.
    case("PiSSA", "llama", dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights="pissa"),
         logits=5e-5),
    case("PiSSA, our own, gpt2", "gpt2", dict(r=4, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True,
                                              init_lora_weights="pissa"), own=True),
    case("OLoRA", "qwen2", dict(r=4, lora_alpha=6, target_modules=["q_proj", "up_proj"], init_lora_weights="olora")),
    case("all norms, by the ending of a name", "llama", dict(r=4, modules_to_save=["norm"])),
    case("all norms, our own", "qwen3", dict(r=4, target_modules=["v_proj"], modules_to_save=["norm", "lm_head"]), own=True),
    case("a rank above the matrix's smaller side", "llama", dict(r=64, lora_alpha=64, target_modules=["k_proj", "q_proj"])),
    case("a rank above it, our own", "gpt2", dict(r=70, target_modules=["c_attn"], fan_in_fan_out=True), own=True),
    case("embeddings are saved", "llama", dict(r=4), embeddings=True),
    case("embeddings are saved, tied", "tied", dict(r=4, target_modules=["q_proj"]), embeddings=True),
    case("a vocabulary with tokens added", "llama", dict(r=4), added=2, merges="alone"),
    case("the same, tied", "tied", dict(r=4, target_modules="all-linear"), added=3, merges="alone"),
    case("the same, gpt2", "gpt2", dict(r=4, target_modules=["c_attn"], fan_in_fan_out=True), added=3, merges="alone"),
    case("tokens added, embedding and head learn", "qwen2", dict(r=4, target_modules=["v_proj"],
                                                                modules_to_save=["embed_tokens", "lm_head"]), added=2,
         merges="alone"),
    case("OLoRA, our own", "qwen3", dict(r=4, target_modules="all-linear", init_lora_weights="olora"), own=True),
]


def auto_class(case):
    return (transformers.AutoModelForSequenceClassification if case["classifies"] else transformers.AutoModelForCausalLM)


def base_model(case, folder):
    """As PEFT's users have it: resized where tokens were added, whose rows the adapter's file brings."""
    model = auto_class(case).from_pretrained(folder / "base", dtype=torch.float32, attn_implementation="eager")
    if case["added"]:
        torch.manual_seed(3)
        model.resize_token_embeddings(model.config.vocab_size + case["added"])
    return model


def write_base(case, folder):
    config = {k: v for k, v in FAMILIES[case["family"]].items() if k != "architectures"}
    if case["classifies"]:
        config |= dict(num_labels=LABELS, pad_token_id=0, problem_type="single_label_classification")
    torch.manual_seed(len(case["name"]))
    config = transformers.AutoConfig.for_model(**config)
    model = auto_class(case).from_config(config)
    with torch.no_grad():  # biases that begin as zero would hide what reads them
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.1)
    model.save_pretrained(folder / "base")


def lora_config(case):
    task = "SEQ_CLS" if case["classifies"] else "CAUSAL_LM"
    return peft.LoraConfig(task_type=task, **dict(init_lora_weights=False) | case["lora"])


def data_of(case, folder):
    rng = numpy.random.default_rng(len(case["name"]))
    rows = rng.integers(3, FAMILIES[case["family"]]["vocab_size"] + case["added"], (STEPS * BATCH, TOKENS), dtype=numpy.int32)
    labels = rng.integers(0, LABELS, STEPS * BATCH)
    if not case["classifies"]:
        numpy.save(folder / "data.npy", rows)
        return "data.npy", rows, labels
    with open(folder / "data.jsonl", "w") as out:
        for row, label in zip(rows, labels):
            out.write(json.dumps({"input_ids": row.tolist(), "label": int(label)}) + "\n")
    return "data.jsonl", rows, labels


def write_run(case, folder, data):
    settings = dict(case["settings"])
    lora = {"adapter": str(folder / "peft")}
    if case["own"]:
        lora = dict(init_lora_weights="false") | {k: v for k, v in case["lora"].items() if k != "fan_in_fan_out"}
    run = {
        "model": {"path": str(folder / "base")},
        "data": {"train": str(folder / data), "sequence_length": TOKENS, "shuffle": False},
        "lora": lora,
        "memory": {"recompute": settings.pop("recompute", "auto")},
        "training": dict(global_batch_size=BATCH, max_steps=STEPS, learning_rate=RATE, lr_scheduler="constant", weight_decay=0.0,
                         max_grad_norm=CLIP, **settings),
        "runtime": {"threads": 2},
        "output": {"dir": str(folder / "out")},
        "debug": {"dump_dir": str(folder / "dump"), "dump": ["loss", "gradients", "logits", "parameters"]},
    }
    if case["classifies"]:
        run["task"] = "sequence_classification"
        run["classification"] = {"num_labels": LABELS, "problem_type": "single_label_classification"}
    (folder / "run.yaml").write_text(json.dumps(run, indent=2))


def load(parameters, tensors):
    """The adapter's tensors into those of a PEFT model, by the names of PEFT's file."""
    with torch.no_grad():
        for key, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(tensors[key]))


def saved(model):
    """What PEFT saves of the model, as the parameters themselves, by the names of its file."""
    keys = set(peft.get_peft_model_state_dict(model, save_embedding_layers=False))
    by_key = {}
    for name, parameter in model.named_parameters():
        key = name.replace(".default", "").replace(".modules_to_save", "").replace("magnitude_vector.weight", "magnitude_vector")
        if key in keys and "original_module" not in name:
            by_key[key] = parameter
    assert by_key.keys() == keys, keys ^ by_key.keys()
    return by_key


def loss_and_logits(case, model, ids, labels):
    if case["classifies"]:
        out = model(input_ids=ids, labels=labels)
        return out.loss, out.logits
    logits = model(input_ids=ids).logits
    vocab = logits.shape[-1]
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, vocab), ids[:, 1:].reshape(-1)), logits


def trainable(model):
    parameters = saved(model)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    return parameters


def take_step(case, model, optimizer, batch):
    optimizer.zero_grad()
    loss, _ = loss_and_logits(case, model, *batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], CLIP)
    optimizer.step()
    return float(loss)


def compare_steps(case, folder, checks, events, rows, labels, model):
    """Stepwise and alongside, from the parameters of step 0."""
    dump = compare.dump_of(folder, 0)["parameters"]
    alongside = peft.PeftModel.from_pretrained(base_model(case, folder), folder / "peft").eval()
    if not (case["embeddings"] or case["added"]):
        alongside = peft.get_peft_model(base_model(case, folder), lora_config(case)).eval()
    along = trainable(alongside)
    load(along, dump)
    optimizer = torch.optim.AdamW(along.values(), lr=RATE, weight_decay=0.0)
    parameters = trainable(model)
    losses, logits, gradients, along_losses = [], [], [], []
    for event in events:
        step = event["step"]
        batch = slice((step - 1) * BATCH, step * BATCH)
        ids, truth = torch.from_numpy(rows[batch]).long(), torch.from_numpy(labels[batch])
        load(parameters, dump)
        model.zero_grad()
        loss, out = loss_and_logits(case, model, ids, truth)
        loss.backward()
        dumped = compare.dump_of(folder, step)
        dump = dumped["parameters"]
        losses.append(compare.relative(event["loss"], float(loss), LOSS, f"step {step}"))
        ours, theirs = dumped["logits"].reshape(out.shape), out.detach().numpy()
        logits.append((compare.difference(ours, theirs), case["logits"] * compare.norm(theirs), f"step {step}"))
        reference = {key: p.grad.numpy() for key, p in parameters.items()}
        floor = 1e-6 * max(compare.norm(g) for g in reference.values())
        for key, theirs in reference.items():
            ours = dumped["gradients"].get(key)
            far = float("inf") if ours is None or ours.shape != theirs.shape else compare.difference(ours, theirs)
            gradients.append((far, GRADIENT * compare.norm(theirs) + floor, f"step {step} {key}"))
        unknown = dumped["gradients"].keys() - reference.keys()
        gradients += [(float("inf"), 1.0, f"{key} is not PEFT's") for key in unknown]
        along_losses.append(compare.relative(event["loss"], take_step(case, alongside, optimizer, (ids, truth)), LOSS,
                                             f"step {step}"))
    for what, measures in (("losses", losses), ("logits", logits), ("gradients", gradients), ("ten steps alongside", along_losses)):
        checks.worst(case["name"], what, measures)


def compare_final(case, folder, checks, model):
    """PEFT opens what was written, and has the last step's tensors."""
    last = compare.dump_of(folder, STEPS)["parameters"]
    opened = peft.PeftModel.from_pretrained(base_model(case, folder), folder / "out" / "final").eval()
    tensors = {key: p.detach().numpy() for key, p in saved(opened).items()}
    same = all(key in last and numpy.array_equal(last[key], value) for key, value in tensors.items())
    checks.check(case["name"], "PEFT opens final/", same and len(tensors) == len(saved(model)), f"{len(tensors)} tensors")
    return opened


def compare_merged(case, binary, folder, checks, opened, rows):
    """plimsoll merge of final/ alone, and of two adapters by weights, against PEFT's merges."""
    def merge(output, *adapters):
        flags = [word for adapter in adapters for word in ("--adapter", adapter)]
        done = subprocess.run([binary, "merge", "--model", str(folder / "base"), "--output", str(folder / output), *flags],
                              text=True, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"merge: {done.stderr.strip()[-400:]}")
        return auto_class(case).from_pretrained(folder / output, dtype=torch.float32, attn_implementation="eager").eval()

    final, first = str(folder / "out" / "final"), str(folder / "peft")
    ids = torch.from_numpy(rows[:BATCH]).long()
    with torch.no_grad():
        theirs = opened(input_ids=ids).logits.numpy()
        ours = merge("merged", final)(input_ids=ids).logits.numpy()
    checks.worst(case["name"], "merged", [(compare.difference(ours, theirs), max(MERGED, case["logits"]) * compare.norm(theirs), "logits")])
    if case["merges"] == "alone":  # a vocabulary of its own
        return
    single, both = merge("first", first).state_dict(), merge("both", f"{final}:0.7", f"{first}:0.3").state_dict()
    last = auto_class(case).from_pretrained(folder / "merged", dtype=torch.float32).state_dict()
    measures = []
    for name, tensor in both.items():
        theirs = (0.7 * last[name].double() + 0.3 * single[name].double()).numpy()
        measures.append((compare.difference(tensor.numpy(), theirs), MERGED * compare.norm(theirs), name))
    checks.worst(case["name"], "two merged by weights", measures)


def train(binary, folder):
    done = subprocess.run([binary, "train", str(folder / "run.yaml"), "--json"], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "step"]


def compare_case(case, binary, folder, checks):
    folder.mkdir(parents=True)
    write_base(case, folder)
    torch.manual_seed(7)
    model = peft.get_peft_model(base_model(case, folder), lora_config(case)).eval()
    with torch.no_grad():  # what is saved whole is not what the base has
        for key, parameter in saved(model).items():
            if "lora_" not in key and "token_adapter" not in key:
                parameter.add_(0.05 * torch.randn(parameter.shape))
        if case["embeddings"]:
            for module in (model.get_input_embeddings(), model.get_output_embeddings()):
                module.weight.add_(0.05 * torch.randn(module.weight.shape))
    # With an adapted embedding or head PEFT saves the base's weight too.
    saves = case["embeddings"] or (False if case["lora"].get("modules_to_save") else "auto")
    model.save_pretrained(folder / "peft", save_embedding_layers=saves)
    data, rows, labels = data_of(case, folder)
    write_run(case, folder, data)
    events = train(binary, folder)
    checks.check(case["name"], "steps", len(events) == STEPS, f"{len(events)} of {STEPS}")
    if not case["own"]:
        initial = compare.dump_of(folder, 0)["parameters"]
        same = all(numpy.array_equal(initial[key], p.detach().numpy()) for key, p in saved(model).items())
        checks.check(case["name"], "PEFT's adapter is read", same, f"{len(saved(model))} tensors")
    compare_steps(case, folder, checks, events, rows, labels, model)
    opened = compare_final(case, folder, checks, model)
    if case["merges"]:
        compare_merged(case, binary, folder, checks, opened, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    checks, binary = Checks(), str(pathlib.Path(arguments.binary).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(arguments.keep or temporary)
        for number, each in enumerate(CASES):
            if arguments.only not in each["name"]:
                continue
            try:
                compare_case(each, binary, root / f"{number:02d}", checks)
            except (RuntimeError, KeyError, OSError, ValueError, AssertionError) as error:
                checks.check(each["name"], "runs", False, f"{type(error).__name__}: {error}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed > 0 or checks.passed == 0)


if __name__ == "__main__":
    main()
