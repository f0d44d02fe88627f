"""The models that are compared with transformers: small, and odd in every size that could be assumed even."""

import json
import pathlib
import re

MODELS = pathlib.Path(__file__).parent.parent.parent / "src" / "models"


def read_samples():
    """The sample of every family, by its model_type: what `.sample` says in its file of src/models."""
    found = {}
    for source in sorted(MODELS.glob("*.cpp")):
        for text in re.findall(r'\.sample =\s*R"\((.*?)\)"', source.read_text(), re.DOTALL):
            sample = json.loads(text)
            found[sample["model_type"]] = sample
    return found


SAMPLES = read_samples()
IMAGE_FAMILIES = {name: sample for name, sample in SAMPLES.items() if "vocab_size" not in sample}
ENCODERS = {name: sample for name, sample in SAMPLES.items()
            if name not in IMAGE_FAMILIES and sample["architectures"][0].endswith("ForSequenceClassification")}
FAMILIES = {name: sample for name, sample in SAMPLES.items() if name not in IMAGE_FAMILIES | ENCODERS}
LLAMA, QWEN2, QWEN3, SMOLLM3, GPT2 = (FAMILIES[name] for name in ("llama", "qwen2", "qwen3", "smollm3", "gpt2"))
MISTRAL = {key: value for key, value in FAMILIES["mistral"].items() if key != "sliding_window"} | dict(num_key_value_heads=3)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=64)


def case(name, config, batch, tokens, record=False, without=(), pretrained=None, **settings):
    """`settings` go over TRAINING; `without` names config fields to leave out of the file; `pretrained` says how
    transformers writes the weights to start from (pretrained.py), else they are Plimsoll's random ones."""
    config = {key: value for key, value in config.items() if key not in without}
    return dict(name=name, config=config, batch=batch, tokens=tokens, record=record, pretrained=pretrained, settings=settings)


# Ten steps; step 1 has rate 0 by the schedule, the clip bites from the start.
TRAINING = dict(
    max_steps=10, precision="fp32", optimizer="adamw", learning_rate=3.0e-3, lr_scheduler="cosine", warmup_steps=3,
    adam_beta1=0.9, adam_beta2=0.99, adam_epsilon=1.0e-8, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.1, weight_decay_scope="matrices",
    max_grad_norm=0.5, seed=42)

LLAMA_CASES = [
    case("one KV head, head_dim 20", LLAMA | dict(num_key_value_heads=1), 3, 37, record=True),
    case("tied", LLAMA | dict(tie_word_embeddings=True, vocab_size=97), 2, 53, record=True),
    case("biases", LLAMA | dict(attention_bias=True, mlp_bias=True, num_attention_heads=4, num_key_value_heads=2,
                                head_dim=12, hidden_size=52), 3, 29, record=True),
    case("rope llama3", LLAMA | dict(rope_theta=500000.0, rope_scaling=LLAMA3_ROPE), 2, 131, record=True),
    case("rope linear, tied", LLAMA | dict(rope_scaling=dict(rope_type="linear", factor=2.5), tie_word_embeddings=True), 2, 71),
    case("rope as transformers 5 writes it", LLAMA | dict(rope_parameters=LLAMA3_ROPE | dict(rope_theta=500000.0)), 2, 67,
         without=["rope_theta"]),
    case("head_dim other than hidden / heads", LLAMA | dict(hidden_size=42, head_dim=26, num_key_value_heads=1), 2, 41),
    case("accumulation over granules", LLAMA | dict(num_attention_heads=6, num_key_value_heads=2, head_dim=10), 6, 300,
         micro_batch_size=2),
    case("three tokens", LLAMA, 5, 3),
    case("rope yarn", LLAMA | dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)), 2, 97),
    case("rope yarn, all its settings", LLAMA | dict(rope_parameters=dict(
        rope_type="yarn", rope_theta=50000.0, factor=8.0, original_max_position_embeddings=32, beta_fast=16.0, beta_slow=2.0,
        truncate=False, mscale=0.7, mscale_all_dim=1.2)), 2, 83, without=["rope_theta"]),
    case("rope dynamic, up to its positions", LLAMA | dict(rope_scaling=dict(rope_type="dynamic", factor=3.3),
                                                           max_position_embeddings=61), 2, 61),
    case("padding", LLAMA | dict(pad_token_id=7, vocab_size=31), 3, 47),
    case("padding, tied, accumulation", LLAMA | dict(pad_token_id=-1, vocab_size=31, tie_word_embeddings=True), 4, 29,
         micro_batch_size=2),
    case("dropout of attention", LLAMA | dict(attention_dropout=0.2, num_key_value_heads=1), 3, 71),
    case("one layer, no clipping, all decay", LLAMA | dict(num_hidden_layers=1, vocab_size=1031), 1, 101,
         max_grad_norm=0, weight_decay_scope="all"),
]
# training.freeze, unfreeze and param_groups; q, k and v lie in one storage here, gate and up too.
SELECTION_CASES = [
    case("frozen below, accumulation", LLAMA | dict(num_hidden_layers=3, attention_bias=True), 4, 37, record=True,
         micro_batch_size=2, freeze=["model.layers.[01].*", "model.embed_tokens.weight", "lm_head.weight"]),
    case("frozen in parts, tied", LLAMA | dict(tie_word_embeddings=True, vocab_size=97, attention_bias=True), 2, 53,
         record=True, freeze=["*.q_proj.*", "*.0.mlp.up_proj.weight", "*norm*"], unfreeze=["model.norm.weight"]),
    case("the head alone", LLAMA, 3, 37, freeze=["*"], unfreeze=["lm_head.*"]),
    case("groups of layers, rates that fall", LLAMA | dict(num_hidden_layers=3, num_key_value_heads=1), 2, 41, record=True,
         param_groups=[dict(params=["model.embed_tokens.*", "model.layers.0.*"], learning_rate=3.0e-3 * 0.8 ** 3),
                       dict(params=["model.layers.1.*"], learning_rate=3.0e-3 * 0.8 ** 2),
                       dict(params=["model.layers.2.*"], learning_rate=3.0e-3 * 0.8)]),
    case("groups of parts, decay and betas, frozen too", LLAMA | dict(attention_bias=True), 2, 41, freeze=["*.0.*.o_proj.*"],
         lr_scheduler="polynomial", lr_scheduler_kwargs=dict(lr_end=1.0e-4),
         param_groups=[dict(params=["*.k_proj.*"], betas=[0.8, 0.95], weight_decay=0.3),
                       dict(params=["*.bias", "*norm*"], weight_decay=0.2, learning_rate=5.0e-3),
                       dict(params=["*.up_proj.*", "*.k_proj.weight"], learning_rate=0.0)]),
    case("groups under sgd", LLAMA | dict(attention_bias=True), 2, 41, optimizer="sgd", momentum=0.9, learning_rate=1.0e-2,
         lr_scheduler="constant", warmup_steps=0, freeze=["*.gate_proj.*"],
         param_groups=[dict(params=["*.v_proj.*"], learning_rate=3.0e-2), dict(params=["*norm*"], weight_decay=0.5)]),
]
MISTRAL_CASES = [
    case("sliding window", MISTRAL | dict(sliding_window=23, num_key_value_heads=1), 2, 83),
]
QWEN2_CASES = [
    case("qwen2, head_dim 20", QWEN2, 3, 37),
    case("qwen2, tied, max_window_layers", QWEN2 | dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=11,
                                                        max_window_layers=1), 2, 83),
    case("qwen2, layer_types", QWEN2 | dict(use_sliding_window=True, sliding_window=7, num_key_value_heads=3, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"]), 2, 59, micro_batch_size=1),
]
QWEN3_CASES = [
    case("qwen3, one KV head", QWEN3, 3, 37),
    case("qwen3, tied, grouped heads, accumulation", QWEN3 | dict(tie_word_embeddings=True, num_attention_heads=6,
                                                                  num_key_value_heads=2, head_dim=20, vocab_size=97), 4, 300,
         micro_batch_size=2),
    case("qwen3, biases, layer_types", QWEN3 | dict(attention_bias=True, use_sliding_window=True, sliding_window=9,
                                                    layer_types=["full_attention", "sliding_attention", "full_attention"]), 2, 61),
]
SMOLLM3_CASES = [
    case("smollm3, one layer without positions", SMOLLM3, 3, 37),
    case("smollm3, tied, no_rope_layers, padding, accumulation", SMOLLM3 | dict(
        num_attention_heads=6, num_key_value_heads=2, vocab_size=97, no_rope_layers=[0, 1, 0, 1], pad_token_id=5), 4, 300,
        without=["tie_word_embeddings", "no_rope_layer_interval"], micro_batch_size=2),
    case("smollm3, biases, layers without positions slide", SMOLLM3 | dict(
        attention_bias=True, mlp_bias=True, num_hidden_layers=4, use_sliding_window=True, sliding_window=11), 2, 59),
    case("smollm3, layer_types, its own base", SMOLLM3 | dict(use_sliding_window=True, sliding_window=9, layer_types=[
        "sliding_attention", "sliding_attention", "full_attention"]), 2, 61, without=["rope_theta"]),
    case("smollm3, no layer has positions", SMOLLM3 | dict(no_rope_layer_interval=1, num_hidden_layers=2), 2, 41),
]
GPT2_CASES = [
    case("gpt2", GPT2, 3, 37, record=True),
    case("gpt2, dropout", GPT2 | dict(resid_pdrop=0.1, embd_pdrop=0.15, attn_pdrop=0.2), 3, 37),
    case("gpt2, dropout, accumulation over blocks of keys", GPT2 | dict(attn_pdrop=0.3), 4, 101, micro_batch_size=2),
    case("gpt2, transformers' own dropout", GPT2, 2, 23, without=["resid_pdrop", "embd_pdrop", "attn_pdrop"]),
    case("gpt2, gelu, scaled by layer, untied", GPT2 | dict(
        activation_function="gelu", scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False), 2, 43),
    case("gpt2, scores not scaled, reordered", GPT2 | dict(
        scale_attn_weights=False, reorder_and_upcast_attn=True, activation_function="gelu_pytorch_tanh"), 2, 31),
    case("gpt2, frozen tables, groups", GPT2, 3, 37, freeze=["transformer.w?e.weight", "*.0.attn.*"],
         param_groups=[dict(params=["*.bias"], learning_rate=6.0e-3)]),
    case("gpt2, quick_gelu", GPT2 | dict(activation_function="quick_gelu"), 2, 31),
    case("gpt2, odd inner size, accumulation", GPT2 | dict(n_inner=131, n_head=4), 4, 61, micro_batch_size=1),
]
# By family; one that has no cases of its own has its sample.
FAMILY_CASES = dict(llama=LLAMA_CASES, mistral=MISTRAL_CASES, qwen2=QWEN2_CASES, qwen3=QWEN3_CASES, smollm3=SMOLLM3_CASES,
                    gpt2=GPT2_CASES)
for name, sample in FAMILIES.items():
    FAMILY_CASES.setdefault(name, [case(name, sample, 3, 37, record=False)])


def optimizer_case(name, **settings):
    """One layer with biases; what is measured is the step."""
    return case(name, LLAMA | dict(num_hidden_layers=1, attention_bias=True, vocab_size=97), 2, 23, **settings)


PRETRAINED_CASES = [
    case("from transformers: llama", LLAMA | dict(num_key_value_heads=1), 3, 37, pretrained={}),
    case("from transformers: llama, tied, shards", LLAMA | dict(tie_word_embeddings=True), 2, 41,
         pretrained=dict(shard="40KB")),
    case("from transformers: llama, biases, bf16", LLAMA | dict(attention_bias=True, mlp_bias=True), 2, 29,
         pretrained=dict(dtype="bfloat16")),
    case("from transformers: llama, fp16, bare names", LLAMA, 2, 31, pretrained=dict(dtype="float16", bare=True)),
    case("from transformers: llama, rope llama3", LLAMA | dict(rope_theta=500000.0, rope_scaling=LLAMA3_ROPE), 2, 67,
         pretrained=dict(dtype="float16", shard="30KB")),
    case("from transformers: mistral, window", MISTRAL | dict(sliding_window=13, num_key_value_heads=1), 2, 53,
         pretrained=dict(dtype="bfloat16", shard="30KB")),
    case("from transformers: mistral, no window", MISTRAL | dict(sliding_window=None), 2, 33, pretrained={}),
    case("from transformers: qwen2", QWEN2, 3, 37, pretrained=dict(shard="30KB")),
    case("from transformers: qwen2, tied, some layers slide, bf16", QWEN2 | dict(
        tie_word_embeddings=True, use_sliding_window=True, sliding_window=11, max_window_layers=1), 2, 59,
        pretrained=dict(dtype="bfloat16")),
    case("from transformers: qwen3", QWEN3, 3, 37, pretrained={}),
    case("from transformers: qwen3, tied, biases, fp16 shards", QWEN3 | dict(
        tie_word_embeddings=True, attention_bias=True), 2, 43, pretrained=dict(dtype="float16", shard="30KB")),
    case("from transformers: qwen3, bare names", QWEN3 | dict(tie_word_embeddings=True, vocab_size=97), 2, 29,
         pretrained=dict(bare=True)),
    case("from transformers: smollm3", SMOLLM3, 3, 37, pretrained={}),
    case("from transformers: smollm3, tied, a window, bf16 shards", SMOLLM3 | dict(
        tie_word_embeddings=True, use_sliding_window=True, sliding_window=13, pad_token_id=5), 2, 43,
        pretrained=dict(dtype="bfloat16", shard="30KB")),
    case("from transformers: gpt2", GPT2, 3, 37, pretrained={}),
    case("from transformers: gpt2, bare names, fp16", GPT2 | dict(n_inner=131), 2, 31,
         pretrained=dict(dtype="float16", bare=True)),
    case("from transformers: gpt2, untied, bf16 shards", GPT2 | dict(tie_word_embeddings=False), 2, 29,
         pretrained=dict(dtype="bfloat16", shard="40KB")),
]


SGD = dict(optimizer="sgd", learning_rate=0.1, weight_decay=0.0, max_grad_norm=0)
OPTIMIZER_CASES = [
    optimizer_case("sgd", **SGD),
    optimizer_case("sgd, decay and clipping", **SGD | dict(weight_decay=0.05, max_grad_norm=0.5)),
    optimizer_case("sgd, decay of all", **SGD | dict(weight_decay=0.05, weight_decay_scope="all")),
    optimizer_case("sgd, momentum", **SGD | dict(momentum=0.9)),
    optimizer_case("sgd, momentum, dampening, decay, clipping, accumulation", micro_batch_size=1, **SGD | dict(
        momentum=0.9, dampening=0.3, weight_decay=0.05, max_grad_norm=0.5)),
    optimizer_case("sgd, nesterov", **SGD | dict(momentum=0.9, nesterov=True)),
    optimizer_case("sgd, nesterov, decay and clipping", **SGD | dict(
        momentum=0.8, nesterov=True, weight_decay=0.05, max_grad_norm=0.5)),
    optimizer_case("adam", optimizer="adam", weight_decay=0.0),
    optimizer_case("adamw without decay or clipping", weight_decay=0.0, max_grad_norm=0),
    optimizer_case("constant", lr_scheduler="constant", warmup_steps=0),
    optimizer_case("constant with warm-up", lr_scheduler="constant_with_warmup"),
    optimizer_case("linear", lr_scheduler="linear"),
    optimizer_case("cosine, a wave and a half", lr_scheduler_kwargs=dict(num_cycles=1.5)),
    optimizer_case("cosine with restarts", lr_scheduler="cosine_with_restarts", lr_scheduler_kwargs=dict(num_cycles=2)),
    optimizer_case("polynomial", lr_scheduler="polynomial", lr_scheduler_kwargs=dict(power=2.0, lr_end=1.0e-5)),
    optimizer_case("warm-up, stable, decay", lr_scheduler="warmup_stable_decay", lr_scheduler_kwargs=dict(
        num_decay_steps=4, decay_type="linear", min_lr_ratio=0.1)),
    optimizer_case("step", lr_scheduler="step", warmup_steps=0, lr_scheduler_kwargs=dict(step_size=3, gamma=0.5)),
    optimizer_case("one cycle", lr_scheduler="one_cycle", warmup_steps=0, lr_scheduler_kwargs=dict(pct_start=0.4)),
]
