"""Holds what adapters begin with beside quantised weights against PyTorch, PEFT and bitsandbytes' codes.

    python tests/interop/qlora_start_compare.py --binary build/plimsoll [--only TEXT]

Tiny random models, llama and GPT-2. LoftQ: algorithm 1 with torch's singular values in fp64 and bitsandbytes' codes on the CPU
(PEFT's own wants a card), each W - s B A. PiSSA and OLoRA: the principal part of the original weights, and what is left of them
in bitsandbytes' codes. DoRA: PEFT's, on the dequantised model. Then ten steps beside PEFT on that model: losses within 1e-5.
Merging a LoftQ adapter onto the original weights: the same numbers as Q + s B A.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import bitsandbytes.functional as functional
import numpy
import peft
import torch
import transformers

import compare
import lora_compare as beside
from checks import Checks

FOUR = dict(load_in_4bit=True)
KINDS = {
    "nf4": (FOUR, lambda x: four_bit(x, "nf4", False)),
    "nf4 double": (FOUR | dict(bnb_4bit_use_double_quant=True), lambda x: four_bit(x, "nf4", True)),
    "fp4": (FOUR | dict(bnb_4bit_quant_type="fp4"), lambda x: four_bit(x, "fp4", False)),
    "int8": (dict(load_in_8bit=True), lambda x: by_rows(x)),
}
LOFTQ = dict(init_lora_weights="loftq")
BEGINNINGS = {
    "loftq": LOFTQ, "loftq, three turns": LOFTQ | dict(loftq_config=dict(loftq_iter=3)),
    "pissa": dict(init_lora_weights="pissa"), "olora": dict(init_lora_weights="olora"),
    "dora": dict(init_lora_weights=False, use_dora=True),
}
MODELS = {"biases": ["q_proj", "v_proj", "o_proj", "down_proj"], "gpt2": ["c_attn", "c_proj", "c_fc"]}


def four_bit(x, kind, double):
    codes, state = functional.quantize_4bit(x.contiguous(), quant_type=kind, compress_statistics=double)
    # By hand: for rows that are a multiple of 32 and not of the block bitsandbytes' CPU backend gives other numbers than its codes'.
    scales = functional.dequantize_blockwise(state.absmax, state.state2) + state.offset if double else state.absmax
    values = state.code[torch.stack([codes.flatten() >> 4, codes.flatten() & 15], 1).flatten().long()][:x.numel()]
    return (values * scales.repeat_interleave(state.blocksize)[:x.numel()]).reshape(x.shape)


def by_rows(x):
    """LLM.int8's rows, by way of fp16 as transformers loads them."""
    half = x.to(torch.float16).float()
    scale = half.abs().amax(1, keepdim=True)
    return torch.round(half * (127 / scale)).clamp(-127, 127) * scale * (1 / 127)


def largest(matrix, rank):
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ v[:rank]


def is_map(module):
    return isinstance(module, (torch.nn.Linear, transformers.pytorch_utils.Conv1D))


def begun(model, case, kind, initial, checks, name):
    """The model's maps as they were rounded; what the adapters began as is checked on the way."""
    rounded, config = KINDS[kind][1], case["lora"]
    init, turns = config["init_lora_weights"], config.get("loftq_config", {}).get("loftq_iter", 1)
    scale = config["lora_alpha"] / config["r"]
    measures = []
    for path, module in model.named_modules():
        if not is_map(module) or path == "lm_head":
            continue
        across = isinstance(module, transformers.pytorch_utils.Conv1D)
        turn = (lambda x: x.T) if across else (lambda x: x)
        w = module.weight.data
        a = initial.get(f"base_model.model.{path}.lora_A.weight")
        if a is None or init is False:
            module.weight.data = rounded(w)
            continue
        ours = scale * torch.from_numpy(initial[f"base_model.model.{path}.lora_B.weight"]).double() @ torch.from_numpy(a).double()
        if init == "loftq":
            part = torch.zeros_like(ours)
            for _ in range(turns):
                q = rounded((w.double() - turn(part)).float())
                part = largest(turn(w.double() - q.double()), config["r"])
            # From the second turn on an element near a bound may round to the other side of it.
            bound = 1e-5 if turns == 1 else 2e-2
        elif init == "pissa":
            part, bound = largest(turn(w), config["r"]), 1e-5
        else:
            q, r = torch.linalg.qr(turn(w).double())
            part, bound = scale * q[:, :config["r"]] @ r[:config["r"]], 1e-5
        measures.append((float((ours - part).norm()), bound * float(part.norm()), path))
        module.weight.data = q if init == "loftq" and turns == 1 else rounded((w.double() - turn(part_before(ours, w, case, kind, turn))).float())
    if measures:
        checks.worst(name, "first values", measures)
    return model


def part_before(ours, w, case, kind, turn):
    """What was taken from W before it was rounded: our own factors, or of LoftQ those of the turn before the last."""
    config = case["lora"]
    if config["init_lora_weights"] != "loftq":
        return ours
    part = torch.zeros_like(ours)
    for _ in range(config["loftq_config"]["loftq_iter"] - 1):
        q = KINDS[kind][1]((w.double() - turn(part)).float())
        part = largest(turn(w.double() - q.double()), config["r"])
    return part


def compare_case(family, kind, beginning, binary, folder, checks):
    name = f"{family}, {kind}, {beginning}"
    folder.mkdir(parents=True)
    lora = dict(r=4, lora_alpha=6, target_modules=MODELS[family]) | BEGINNINGS[beginning]
    case = beside.case(name, family, lora, own=True)
    beside.write_base(case, folder)
    data, rows, labels = beside.data_of(case, folder)
    beside.write_run(case, folder, data)
    run = json.loads((folder / "run.yaml").read_text())
    run["quantization"] = KINDS[kind][0]
    (folder / "run.yaml").write_text(json.dumps(run))
    events = beside.train(binary, folder)
    initial = compare.dump_of(folder, 0)["parameters"]
    base = begun(beside.base_model(case, folder), case, kind, initial, checks, name)
    plain = {k: v for k, v in lora.items() if k not in ("loftq_config", "init_lora_weights")}
    config = peft.LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False, fan_in_fan_out=family == "gpt2", **plain)
    model = peft.get_peft_model(base, config).eval()
    parameters = beside.trainable(model)
    if "use_dora" in lora:  # magnitudes are PEFT's, of our A and B
        beside.load({k: p for k, p in parameters.items() if "magnitude" not in k}, initial)
        for path, module in model.named_modules():
            if hasattr(module, "lora_magnitude_vector") and len(module.lora_magnitude_vector):
                weight = module.base_layer.weight.data
                weight = weight.T if family == "gpt2" else weight
                made = torch.linalg.norm(weight + module.scaling["default"] * module.lora_B["default"].weight
                                         @ module.lora_A["default"].weight, dim=1).detach().numpy()
                ours = initial[path + ".lora_magnitude_vector"]
                checks.worst(name, "magnitudes", [(compare.difference(ours, made), 1e-5 * compare.norm(made), path)])
    beside.load(parameters, initial)
    optimizer = torch.optim.AdamW(parameters.values(), lr=beside.RATE, weight_decay=0.0)
    losses = []
    for event in events:
        batch = slice((event["step"] - 1) * beside.BATCH, event["step"] * beside.BATCH)
        ids, truth = torch.from_numpy(rows[batch]).long(), torch.from_numpy(labels[batch])
        bound = beside.LOSS if "turns" not in beginning else 2e-4
        losses.append(compare.relative(event["loss"], beside.take_step(case, model, optimizer, (ids, truth)), bound, f"step {event['step']}"))
    checks.worst(name, "ten steps alongside", losses)
    if beginning != "loftq":
        return
    subprocess.run([binary, "merge", "--model", str(folder / "base"), "--adapter", str(folder / "out" / "final"), "--output",
                    str(folder / "merged")], check=True, capture_output=True, timeout=60)
    merged = transformers.AutoModelForCausalLM.from_pretrained(folder / "merged", dtype=torch.float32).state_dict()
    last = compare.dump_of(folder, beside.STEPS)["parameters"]
    measures = []
    for path, module in begun(beside.base_model(case, folder), case, kind, initial, Checks(), name).named_modules():
        a = last.get(f"base_model.model.{path}.lora_A.weight")
        if a is None:
            continue
        part = lora["lora_alpha"] / lora["r"] * torch.from_numpy(last[f"base_model.model.{path}.lora_B.weight"]) @ torch.from_numpy(a)
        theirs = (module.weight.data + (part.T if family == "gpt2" else part)).numpy()
        measures.append((compare.difference(merged[path + ".weight"].numpy(), theirs), 1e-5 * compare.norm(theirs), path))
    checks.worst(name, "merged", measures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    checks, binary = Checks(), str(pathlib.Path(arguments.binary).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        for family in MODELS:
            for kind in KINDS:
                for beginning in BEGINNINGS:
                    name = f"{family}, {kind}, {beginning}"
                    if arguments.only in name:
                        compare_case(family, kind, beginning, binary, pathlib.Path(temporary) / name.replace(" ", "-"), checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed > 0 or checks.passed == 0)


if __name__ == "__main__":
    main()
