"""The works that are compared, what a step of each computes, and the goals they are held to."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

# W4's adapters, as its run file has them.
LORA = dict(r=16, lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"])

# steps: optimizer steps a round, so that a round takes a few seconds.
# Goals: factors of PyTorch's tokens/s where its GEMM is about half of the best and the machine has
# AVX-512 ("strict"), elsewhere ("plain"); the share of PyTorch's peak memory; the share of the best GEMM rate. "bf16": the
# same against PyTorch's autocast.
WORKS = {
    "W1": dict(folder="w1", batch=8, tokens=256, steps=4, memory=0.32, share=None,
               strict=dict(eager=2.3, compiled=2.0), plain=dict(eager=1.3, compiled=1.2),
               bf16=dict(eager=2.2, memory=None, share=None)),
    "W2": dict(folder="w2", batch=1, tokens=512, steps=2, memory=0.68, share=0.75,
               strict=dict(eager=2.7, compiled=2.3), plain=dict(eager=1.3, compiled=1.2),
               bf16=dict(eager=2.6, compiled=1.8, memory=0.65, share=None)),
    "W2b": dict(folder="w2b", batch=4, tokens=512, steps=1, memory=0.55, share=0.75,
                strict=dict(eager=2.5, compiled=2.1), plain=dict(eager=1.3, compiled=1.2),
                bf16=dict(eager=2.5, memory=None, share=0.6)),
    "W3": dict(folder="w3", batch=4, tokens=64, steps=2, memory=0.66, share=None,
               strict=dict(eager=3.0, compiled=2.5), plain=dict(eager=1.3, compiled=1.3),
               bf16=dict(eager=1.9, memory=None, share=None)),
    # Adapters alone learn: against PEFT, within the memory that its run file grants.
    "W4": dict(folder="w4", batch=1, tokens=512, steps=1, memory=0.45, share=None, peft=True,
               strict=dict(eager=2.4), plain=dict(eager=1.5),
               bf16=dict(eager=2.2, memory=0.45, share=None)),
    # The same over 4-bit weights, against PEFT over bf16's: 0.20 of its peak in fp32, 5,086 MiB, is 0.19 of that in bf16.
    "W4Q": dict(folder="w4", run="qlora.yaml", batch=1, tokens=512, steps=1, memory=None, share=None, peft=True,
                strict=dict(eager=1.2), plain=dict(eager=1.2), bf16=dict(eager=1.2, memory=0.19, share=None)),
}


def config_of(work):
    return json.loads((HERE / work["folder"] / "config.json").read_text())


def peer_options(work):
    """What the peer is told of a work beside its shape."""
    return ["--lora", json.dumps(LORA)] if work.get("peft") else []


def matmul_parameters_and_attention_width(config):
    """Weights that a token is multiplied with, the head included, and heads x head_dim, layers."""
    if config["model_type"] == "gpt2":
        hidden, layers = config["n_embd"], config["n_layer"]
        inner = config["n_inner"] or 4 * hidden
        per_layer = 4 * hidden * hidden + 2 * hidden * inner
        return layers * per_layer + config["vocab_size"] * hidden, hidden, layers
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    q_width = config["num_attention_heads"] * config["head_dim"]
    kv_width = config["num_key_value_heads"] * config["head_dim"]
    per_layer = hidden * (2 * q_width + 2 * kv_width) + 3 * hidden * config["intermediate_size"]
    return layers * per_layer + config["vocab_size"] * hidden, q_width, layers


def step_flops(work):
    """6 x matmul parameters x tokens (4 where they are frozen: there is no weight gradient) + 3.5 x the forward of attention, halved
    for the causal mask. Adapters' own products are left out."""
    matmul, width, layers = matmul_parameters_and_attention_width(config_of(work))
    batch, tokens = work["batch"], work["tokens"]
    attention_forward = layers * batch * 2 * tokens * tokens * width
    return (4 if work.get("peft") else 6) * matmul * batch * tokens + 3.5 * attention_forward
