"""Holds `plimsoll quantize` against transformers + bitsandbytes on the CPU: the tensors of both directories, bit for bit.

    python tests/interop/quantize_compare.py --binary build/plimsoll

Needs bench/requirements.txt. Tiny random models (llama with biases, tied qwen2, GPT-2), fp32 and bf16, nf4, fp4, double or not,
int8. With double quantisation PyTorch's mean depends on its vectors and threads: there our offset must be within 2 ulp of it,
and bitsandbytes is asked again with ours. The result must load again in transformers and answer as theirs does. Of the
directories that transformers saved, fp32: ten steps of LoRA on each, beside PEFT on the dequantised model, and evaluation before
them; losses within 1e-5. PEFT opens what was trained over its own quantised model.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import bitsandbytes
import numpy
import peft
import torch
import transformers
from bitsandbytes import functional
from safetensors.torch import load_file

STEPS, BATCH, TOKENS = 10, 3, 23
STATE = ".quant_state.bitsandbytes__"
KINDS = {
    "nf4": (["--format", "nf4", "--double-quant", "false"], dict(load_in_4bit=True, bnb_4bit_quant_type="nf4")),
    "nf4-double": (["--format", "nf4"], dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)),
    "fp4": (["--format", "fp4", "--double-quant", "false"], dict(load_in_4bit=True, bnb_4bit_quant_type="fp4")),
    "fp4-double": (["--format", "fp4"], dict(load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_use_double_quant=True)),
    "int8": (["--format", "int8"], dict(load_in_8bit=True)),
}


def models():
    sizes = dict(vocab_size=96, hidden_size=72, intermediate_size=136, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    yield "llama", transformers.LlamaConfig(**sizes, attention_bias=True)
    yield "qwen2", transformers.Qwen2Config(**sizes, tie_word_embeddings=True)
    # Not 4 * 72: for rows of 288, a multiple of 32 and not of the block, bitsandbytes' CPU backend gives numbers
    # that are not those of its codes and scales.
    yield "gpt2", transformers.GPT2Config(vocab_size=96, n_embd=72, n_inner=136, n_layer=2, n_head=4, n_positions=64,
                                            embd_pdrop=0.0, resid_pdrop=0.0, attn_pdrop=0.0)


def state_of(tensor):
    return json.loads(bytes(tensor.tolist()))


def weights(directory):
    found = {}
    for path in sorted(pathlib.Path(directory).glob("*.safetensors")):
        found.update(load_file(path))
    return found


def nested_again(source, name, ours, config_type):
    """What bitsandbytes makes of the scales with our offset."""
    matrix = source[name].T.contiguous() if config_type == "gpt2" else source[name]
    state = state_of(next(t for key, t in ours.items() if key.startswith(name + STATE)))
    _, plain = functional.quantize_4bit(matrix, quant_type=state["quant_type"])
    offset = torch.tensor(state["nested_offset"], dtype=torch.float32)
    mean = plain.absmax.mean()
    assert abs(float(mean) - float(offset)) <= 2 * numpy.spacing(numpy.float32(mean)), f"{name}: offset {offset}, theirs {mean}"
    codes, outer = functional.quantize_blockwise(plain.absmax - offset, blocksize=256)
    return {name + ".absmax": codes, name + ".nested_absmax": outer.absmax}, bool(mean == offset)


def compare(source, ours, theirs, config_type):
    assert set(ours) == set(theirs), sorted(set(ours) ^ set(theirs))
    same_offsets = offsets = 0
    replaced = {}
    for name in [key[:-len(".nested_absmax")] for key in ours if key.endswith(".nested_absmax")]:
        tensors, same = nested_again(source, name, ours, config_type)
        replaced.update(tensors)
        offsets, same_offsets = offsets + 1, same_offsets + same
    for name, tensor in ours.items():
        other = theirs[name]
        if STATE in name:
            mine, other_state = state_of(tensor), state_of(other)
            if "nested_offset" in mine and mine["nested_offset"] != other_state["nested_offset"]:
                other_state["nested_offset"] = mine["nested_offset"]
                assert bytes(tensor.tolist()).decode() == json.dumps(other_state), name
                continue
        other = replaced.get(name, other)
        assert tensor.dtype == other.dtype and tensor.shape == other.shape, f"{name}: {tensor.dtype} {tuple(tensor.shape)}"
        assert torch.equal(tensor.contiguous().flatten().view(torch.uint8), other.contiguous().flatten().view(torch.uint8)), name
    return offsets, same_offsets


def dequantised(theirs, source):
    """The plain model of the same numbers, in fp32."""
    whole = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        for name, module in theirs.named_modules():
            if isinstance(module, bitsandbytes.nn.Linear4bit):
                state = module.weight.quant_state
                kept, state.dtype = state.dtype, torch.float32
                weight = functional.dequantize_4bit(module.weight.data, state).reshape(state.shape)
                state.dtype = kept
            elif isinstance(module, bitsandbytes.nn.Linear8bitLt):
                scale = module.weight.SCB if module.weight.SCB is not None else module.state.SCB
                weight = module.weight.data.float() * scale.float()[:, None] / 127
            else:
                continue
            into = whole.get_submodule(name).weight
            into.copy_(weight.T if into.shape != weight.shape or isinstance(whole.get_submodule(name), transformers.pytorch_utils.Conv1D)
                       else weight)
    return whole


def run_json(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments), "--json"], text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-600:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def loss_of(model, ids):
    logits = model(input_ids=ids).logits
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def train_beside(binary, folder, saved, source, theirs, config):
    """Ten steps from PEFT's adapter on what transformers saved, against PEFT on the dequantised model."""
    torch.manual_seed(11)
    is_gpt2 = config.model_type == "gpt2"
    targets = ["c_attn", "c_fc"] if is_gpt2 else ["q_proj", "v_proj", "down_proj"]
    lora = peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=targets, init_lora_weights=False,
                           fan_in_fan_out=is_gpt2)
    model = peft.get_peft_model(dequantised(theirs, source), lora).eval()
    work = folder / f"{saved.name}-lora"
    model.save_pretrained(work / "peft")
    rows = numpy.random.default_rng(5).integers(3, 96, (STEPS * BATCH, TOKENS), dtype=numpy.int32)
    numpy.save(work / "data.npy", rows)
    run = {"model": {"path": str(saved)}, "lora": {"adapter": str(work / "peft")},
           "data": {"train": str(work / "data.npy"), "eval": str(work / "data.npy"), "sequence_length": TOKENS, "shuffle": False},
           "training": dict(global_batch_size=BATCH, max_steps=STEPS, learning_rate=3e-3, lr_scheduler="constant", weight_decay=0.0,
                            max_grad_norm=0.5, eval_strategy="no"),
           "output": {"dir": str(work / "out")}}
    (work / "run.yaml").write_text(json.dumps(run))
    evaluated = run_json(binary, "eval", work / "run.yaml", "lora=null")[-1]["loss"]
    with torch.no_grad(), model.disable_adapter():
        expected = float(loss_of(model, torch.from_numpy(rows).long()))
    worst = abs(evaluated - expected) / expected
    events = [e for e in run_json(binary, "train", work / "run.yaml") if e["event"] == "step"]
    assert len(events) == STEPS, events
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.0)
    for event in events:
        ids = torch.from_numpy(rows[(event["step"] - 1) * BATCH:event["step"] * BATCH]).long()
        optimizer.zero_grad()
        loss = loss_of(model, ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        worst = max(worst, abs(event["loss"] - float(loss)) / float(loss))
    assert worst <= 1e-5, f"{saved.name}: losses differ by {worst:.1e}"
    opened = peft.PeftModel.from_pretrained(theirs, work / "out" / "final").eval()
    opened.enable_input_require_grads()  # without gradients bitsandbytes packs weights, of even shapes alone
    ids = torch.arange(12)[None]
    difference = float((opened(input_ids=ids).logits - model(input_ids=ids).logits).abs().max())
    opened.unload()
    return worst, difference


def check(binary, folder, name, config, dtype):
    torch.manual_seed(3)
    source = folder / f"{name}-{dtype}"
    transformers.AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).save_pretrained(source, max_shard_size="60KB")
    for kind, (arguments, settings) in KINDS.items():
        made, saved = folder / f"{source.name}-{kind}", folder / f"{source.name}-{kind}-theirs"
        subprocess.run([binary, "quantize", "--model", source, "--output", made, *arguments], check=True, stdout=subprocess.DEVNULL)
        theirs = transformers.AutoModelForCausalLM.from_pretrained(
            source, quantization_config=transformers.BitsAndBytesConfig(**settings), device_map="cpu")
        theirs.save_pretrained(saved)
        offsets, same = compare(weights(source), weights(made), weights(saved), config.model_type)
        fields = [json.loads((d / "config.json").read_text())["quantization_config"] for d in (made, saved)]
        assert fields[0] == fields[1], fields
        ids = torch.arange(12)[None]
        loaded = transformers.AutoModelForCausalLM.from_pretrained(made, device_map="cpu")
        difference = float((loaded(ids).logits - theirs(ids).logits).abs().max())
        assert difference <= 1e-3, f"{made.name}: logits differ by {difference}"
        print(f"{made.name}: {len(weights(made))} tensors, the same bits; logits within {difference:.1e}"
              + (f"; offsets {same} of {offsets} the same" if offsets else ""))
        if dtype == "float32":
            losses, logits = train_beside(binary, folder, saved, source, theirs, config)
            assert logits <= 2e-2, f"{saved.name}: PEFT's logits over the quantised model differ by {logits}"
            print(f"{saved.name}: {STEPS} steps of LoRA beside the dequantised model, losses within {losses:.1e}; "
                  f"PEFT over the quantised one, logits within {logits:.1e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="build/plimsoll")
    binary = parser.parse_args().binary
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        for name, config in models():
            for dtype in ("float32", "bfloat16"):
                check(binary, pathlib.Path(folder), name, config, dtype)


if __name__ == "__main__":
    main()
