"""The models that are compared with transformers: small, and odd in every size that could be assumed even."""

LLAMA = dict(
    architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=60, intermediate_size=77, num_hidden_layers=2,
    num_attention_heads=3, num_key_value_heads=3, head_dim=20, vocab_size=211, max_position_embeddings=512,
    hidden_act="silu", rms_norm_eps=1e-5, rope_theta=10000.0, initializer_range=0.1, tie_word_embeddings=False,
    attention_bias=False, mlp_bias=False, attention_dropout=0.0, bos_token_id=1, eos_token_id=2)
MISTRAL = {key: value for key, value in LLAMA.items() if key not in ("attention_bias", "mlp_bias")} | dict(
    architectures=["MistralForCausalLM"], model_type="mistral")
GPT2 = dict(
    architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=211, n_positions=128, n_embd=60, n_layer=2, n_head=3,
    n_inner=None, activation_function="gelu_new", layer_norm_epsilon=1e-5, initializer_range=0.1, resid_pdrop=0.0,
    embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=64)


def case(name, config, batch, tokens, record=False, without=(), **settings):
    """`settings` go over TRAINING; `without` names config fields to leave out of the file."""
    config = {key: value for key, value in config.items() if key not in without}
    return dict(name=name, config=config, batch=batch, tokens=tokens, record=record, settings=settings)


# Ten steps; step 1 has rate 0 by the schedule, the clip bites from the start.
TRAINING = dict(
    max_steps=10, precision="fp32", optimizer="adamw", learning_rate=3.0e-3, lr_scheduler="cosine", warmup_steps=3,
    adam_beta1=0.9, adam_beta2=0.99, adam_epsilon=1.0e-8, weight_decay=0.1, weight_decay_scope="matrices",
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
    case("one layer, no clipping, all decay", LLAMA | dict(num_hidden_layers=1, vocab_size=1031), 1, 101,
         max_grad_norm=0, weight_decay_scope="all"),
]
MISTRAL_CASES = [
    case("sliding window", MISTRAL | dict(sliding_window=23, num_key_value_heads=1), 2, 83),
]
GPT2_CASES = [
    case("gpt2", GPT2, 3, 37, record=True),
    case("gpt2, odd inner size, accumulation", GPT2 | dict(n_inner=131, n_head=4), 4, 61, micro_batch_size=1),
]
