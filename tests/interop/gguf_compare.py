"""Holds `plimsoll export --format gguf` against the `gguf` package: every tensor's bytes, every metadata entry.

    python gguf_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

For each family a model is saved by transformers beside a tokenizer of its kind. The package's own tables say what its
tensors are called, its quantisers what their bytes are (f32, f16, bf16, q8_0, bit for bit), its writer and SpecialVocab
what the metadata is; what is written here is read back by its reader. One line per check, PASS or FAIL.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gguf  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import checks  # noqa: E402
import tokenizer_kinds as kinds  # noqa: E402

TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16,
         "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
ARCHITECTURES = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3", "smollm3": "SMOLLM3", "gpt2": "GPT2"}
PAIRED = (gguf.MODEL_ARCH.LLAMA, gguf.MODEL_ARCH.SMOLLM3)  # whose rotary pairs stand side by side
WIDE = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=600)
ODD = dict(vocab_size=600)  # rows of 60 and 77: no multiple of a block
LLAMA3_ROPE = cases.LLAMA3_ROPE | dict(original_max_position_embeddings=8192)

# name, config, dtype of the file, tokenizer, its ggml.pre
MODELS = [
    ("llama, tied", cases.LLAMA | WIDE | dict(tie_word_embeddings=True), torch.bfloat16, "llama3", "llama-bpe"),
    ("llama, biases, odd rows", cases.LLAMA | ODD | dict(attention_bias=True, mlp_bias=True), torch.float32, "smollm", "smollm"),
    ("llama, rope llama3", cases.LLAMA | WIDE | dict(rope_theta=500000.0, rope_scaling=LLAMA3_ROPE), torch.float16, "llama3",
     "llama-bpe"),
    ("llama, rope linear", cases.LLAMA | WIDE | dict(rope_scaling=dict(rope_type="linear", factor=2.5)), torch.float32, "gpt2",
     "gpt-2"),
    ("llama, sentencepiece", cases.LLAMA | WIDE | dict(vocab_size=700), torch.float32, "characters", "default"),
    ("mistral", cases.MISTRAL | WIDE | dict(sliding_window=None), torch.bfloat16, None, None),
    ("qwen2", cases.QWEN2 | WIDE, torch.bfloat16, "qwen2", "qwen2"),
    ("qwen2, yarn", cases.QWEN2 | dict(vocab_size=600, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=64)), torch.float32, "qwen2", "qwen2"),
    ("qwen3", cases.QWEN3 | ODD, torch.bfloat16, "qwen2", "qwen2"),
    ("smollm3", cases.SMOLLM3 | WIDE | dict(no_rope_layer_interval=4, num_hidden_layers=5), torch.bfloat16, "llama3", "llama-bpe"),
    ("gpt2", cases.GPT2 | dict(vocab_size=600, n_embd=64, n_head=4), torch.float32, "gpt2", "gpt-2"),
    ("gpt2, head of its own", cases.GPT2 | dict(vocab_size=600, tie_word_embeddings=False), torch.float32, "gpt2", "gpt-2"),
]


def texts():
    folder = pathlib.Path(__file__).resolve().parent
    return [path.read_text() for path in sorted(folder.glob("*.py"))]


def save_tokenizer(kind, folder):
    """With special tokens that are added, chat template and all; the ids of a model are more than its tokens."""
    made = {"gpt2": lambda: kinds.byte_level(texts(), 500), "smollm": lambda: kinds.byte_level(texts(), 500, digits=True),
            "llama3": lambda: kinds.byte_level(texts(), 500, split=kinds.LLAMA3),
            "qwen2": lambda: kinds.byte_level(texts(), 500, split=kinds.QWEN2),
            "characters": lambda: kinds.characters(texts(), 600)}[kind]()
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    made.add_tokens(["<think>"])
    if kind == "llama3":
        made.add_special_tokens(["<|begin|>"])
        made = kinds.around(made, ["<|begin|>"])
    begin, end = ("<s>", "</s>") if kind == "characters" else ("<|begin|>" if kind == "llama3" else None, "<|endoftext|>")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=begin, eos_token=end, pad_token="<|im_end|>")
    if kind != "gpt2":
        fast.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    fast.save_pretrained(folder)
    return fast


def save(config, dtype, tokenizer, folder):
    transformers.set_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        next(iter(model.parameters()))[5] = 0  # a block without a scale
    model.to(dtype).save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(dict(temperature=0.7, top_k=40, top_p=0.9, eos_token_id=[1, 2])))
    return model, save_tokenizer(tokenizer, folder) if tokenizer else None


def rotated(weight, heads):
    """The rows of a head: first and second half turn into pairs."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def expected_tensors(model, config, kind):
    """Name to (type, bytes as the package's quantiser makes them)."""
    arch = gguf.MODEL_ARCH[ARCHITECTURES[config["model_type"]]]
    settings = model.config
    names = gguf.get_tensor_name_map(arch, settings.num_hidden_layers)
    result = {}
    for name, parameter in model.named_parameters():
        value = parameter.detach().float().numpy()
        if arch in PAIRED and ".q_proj." in name:
            value = rotated(value, settings.num_attention_heads)
        if arch in PAIRED and ".k_proj." in name:
            value = rotated(value, settings.num_key_value_heads)
        if arch == gguf.MODEL_ARCH.GPT2 and name.endswith(".weight") and ".c_" in name:
            value = numpy.ascontiguousarray(value.T)
        result[names.get_name(name, try_suffixes=(".weight", ".bias"))] = value
    if "rope llama3" in kind:
        import transformers.modeling_rope_utils as rope
        plain = 1.0 / 500000.0 ** (numpy.arange(0, settings.head_dim, 2) / settings.head_dim)
        scaled = rope.ROPE_INIT_FUNCTIONS["llama3"](settings, "cpu")[0].double().numpy()
        result["rope_freqs.weight"] = (plain / scaled).astype(numpy.float32)
    return result


def tensor_type(name, shape, dtype):
    wanted = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0"}[dtype]
    if len(shape) < 2 or name.endswith("_norm.weight") or name == "position_embd.weight":
        wanted = "F32"
    if wanted == "Q8_0" and shape[-1] % 32:
        wanted = "F16"
    return gguf.GGMLQuantizationType[wanted]


def compare_tensors(reader, expected, dtype):
    ours = {tensor.name: tensor for tensor in reader.tensors}
    if ours.keys() != expected.keys():
        return False, f"names differ: {sorted(ours.keys() ^ expected.keys())[:6]}"
    for name, value in expected.items():
        kind = tensor_type(name, value.shape, dtype)
        found = ours[name]
        if found.tensor_type != kind or list(found.shape) != list(reversed(value.shape)):
            return False, f"{name}: {found.tensor_type.name} {list(found.shape)}, expected {kind.name} {list(value.shape)}"
        if name == "rope_freqs.weight":
            if not numpy.allclose(found.data, value, rtol=3e-6, atol=0):
                return False, name
            continue
        bytes_ = gguf.quants.quantize(value, kind)
        if found.data.tobytes() != bytes_.tobytes():
            return False, f"{name}: other bytes"
    return True, f"{len(expected)} tensors"


def vocabulary(writer, folder, fast, size, pre):
    spm = pre == "default"
    writer.add_tokenizer_model("llama" if spm else "gpt2")
    writer.add_tokenizer_pre(pre)
    words = {index: word for word, index in fast.get_vocab().items()}
    added = fast.added_tokens_decoder
    tokens, types = [], []
    for index in range(size):
        word = words.get(index)
        special = index in added and (added[index].special or (word.startswith("<|") and word.endswith("|>")))
        unknown, byte = spm and index == 0, spm and word is not None and word.startswith("<0x") and len(word) == 6
        tokens.append(f"[PAD{index}]" if word is None else word)
        types.append(gguf.TokenType.UNUSED if word is None else gguf.TokenType.UNKNOWN if unknown else gguf.TokenType.CONTROL
                     if special else gguf.TokenType.USER_DEFINED if index in added else gguf.TokenType.BYTE if byte
                     else gguf.TokenType.NORMAL)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    gguf.SpecialVocab(folder, load_merges=not spm, n_vocab=size).add_to_gguf(writer, quiet=True)


def expected_metadata(model, config, folder, fast, dtype, pre, tensors):
    settings, family = model.config, config["model_type"]
    arch = gguf.MODEL_ARCH[ARCHITECTURES[family]]
    writer = gguf.GGUFWriter(None, gguf.MODEL_ARCH_NAMES[arch])
    writer.add_type(gguf.GGUFType.MODEL)
    for add, value in (("temp", 0.7), ("top_k", 40), ("top_p", 0.9)):
        getattr(writer, f"add_sampling_{add}")(value)
    writer.add_size_label(gguf.size_label(sum(value.size for value in tensors.values()), 0, 0, 0))
    writer.add_block_count(settings.num_hidden_layers)
    writer.add_context_length(settings.max_position_embeddings)
    writer.add_embedding_length(settings.hidden_size)
    writer.add_feed_forward_length(4 * settings.n_embd if family == "gpt2" else settings.intermediate_size)
    writer.add_head_count(settings.num_attention_heads)
    if family == "gpt2":
        writer.add_layer_norm_eps(settings.layer_norm_epsilon)
    else:
        writer.add_head_count_kv(settings.num_key_value_heads)
        writer.add_layer_norm_rms_eps(settings.rms_norm_eps)
        rope = settings.rope_parameters
        writer.add_rope_freq_base(rope["rope_theta"])
        if rope["rope_type"] in ("linear", "yarn"):
            writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
            writer.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if (head := getattr(settings, "head_dim", None)) is not None:
            writer.add_key_length(head)
            writer.add_value_length(head)
    if arch in PAIRED:
        writer.add_vocab_size(settings.vocab_size)
        writer.add_rope_dimension_count(settings.hidden_size // settings.num_attention_heads if family == "smollm3" else settings.head_dim)
    writer.add_file_type(TYPES[dtype])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    if fast is None:
        writer.add_tokenizer_model("none")
        gguf.SpecialVocab(folder).add_to_gguf(writer, quiet=True)
    else:
        vocabulary(writer, folder, fast, settings.vocab_size, pre)
    return {key: entry.value for key, entry in writer.kv_data[0].items()}


def compare_metadata(reader, expected):
    # ours are more: the name is the folder's, a text's begin is always said, scores follow the merges
    free = {"general.name", "tokenizer.ggml.add_bos_token", "tokenizer.ggml.scores"}
    ours = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    wrong = [key for key in (ours.keys() ^ expected.keys()) - free]
    for key in ours.keys() & expected.keys():
        mine, theirs = ours[key], expected[key]
        if isinstance(theirs, float):
            theirs = float(numpy.float32(theirs))
        if isinstance(theirs, (list, tuple)):
            theirs = [entry.decode() if isinstance(entry, bytes) else entry for entry in theirs]
        if mine != theirs:
            wrong.append(f"{key}: {str(mine)[:60]}, expected {str(theirs)[:60]}")
    return not wrong, "; ".join(sorted(wrong)[:6]) or f"{len(expected)} entries"


def export(binary, folder, dtype):
    file = folder / f"{dtype}.gguf"
    done = subprocess.run([binary, "export", "--model", str(folder), "--format", "gguf", "--dtype", dtype, "--output", str(file)],
                          text=True, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return gguf.GGUFReader(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--keep", help="write models under this directory")
    arguments = parser.parse_args()
    report = checks.Checks()
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(arguments.keep or temporary)
        for name, config, stored, tokenizer, pre in MODELS:
            if arguments.only not in name:
                continue
            folder = root / name.replace(", ", "-").replace(" ", "-")
            model, fast = save(config, stored, tokenizer, folder)
            tensors = expected_tensors(model, config, name)
            for dtype in TYPES:
                reader = export(arguments.binary, folder, dtype)
                report.check(name, f"{dtype} tensors", *compare_tensors(reader, tensors, dtype))
                expected = expected_metadata(model, config, folder, fast, dtype, pre, tensors)
                report.check(name, f"{dtype} metadata", *compare_metadata(reader, expected))
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
