"""Holds `plimsoll quantize` against transformers + bitsandbytes on the CPU: the tensors of both directories, bit for bit.

    python tests/interop/quantize_compare.py --binary build/plimsoll

Needs bench/requirements.txt. Tiny random models (llama with biases, tied qwen2, GPT-2), fp32 and bf16, nf4, fp4, double or not,
int8. With double quantisation PyTorch's mean depends on its vectors and threads: there our offset must be within 2 ulp of it,
and bitsandbytes is asked again with ours. The result must load again in transformers and answer as theirs does.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy
import torch
import transformers
from bitsandbytes import functional
from safetensors.torch import load_file

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
    yield "gpt2", transformers.GPT2Config(vocab_size=96, n_embd=72, n_layer=2, n_head=4, n_positions=64)


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
