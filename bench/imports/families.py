"""Families of transformers as small random models: what imports from PyTorch are tried with.

Each function gives (module, example): the module computes a loss from the example's tensors.
"""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
import transformers as tf  # noqa: E402

ROWS, TOKENS, WORDS = 2, 12, 97
SIZES = dict(vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
DECODER = SIZES | dict(num_key_value_heads=2, max_position_embeddings=64, pad_token_id=None, bos_token_id=1, eos_token_id=2)
ENCODER = SIZES | dict(max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def ids(rows=ROWS, tokens=TOKENS, seed=0):
    return torch.randint(3, WORDS, (rows, tokens), generator=torch.Generator().manual_seed(seed))


def causal(model_class, config):
    config.use_cache = False
    return model_class(config), {"input_ids": ids(), "labels": ids()}


def masked(model_class, config, **more):
    return model_class(config), {"input_ids": ids(), "labels": ids(seed=1), **more}


def vision(model_class, config, size):
    config.num_labels = 3
    pixels = torch.randn(ROWS, 3, size, size, generator=torch.Generator().manual_seed(0))
    return model_class(config), {"pixel_values": pixels, "labels": torch.tensor([0, 2])}


def positions():
    return torch.arange(2, 2 + TOKENS).expand(ROWS, TOKENS)


FAMILIES = {
    "llama": lambda: causal(tf.LlamaForCausalLM, tf.LlamaConfig(**DECODER)),
    "qwen2": lambda: causal(tf.Qwen2ForCausalLM, tf.Qwen2Config(**DECODER)),
    "qwen3": lambda: causal(tf.Qwen3ForCausalLM, tf.Qwen3Config(**DECODER, head_dim=8)),
    "mistral": lambda: causal(tf.MistralForCausalLM, tf.MistralConfig(**DECODER, sliding_window=None)),
    "gemma": lambda: causal(tf.GemmaForCausalLM, tf.GemmaConfig(**(DECODER | dict(pad_token_id=0)), head_dim=8)),
    "phi": lambda: causal(tf.PhiForCausalLM, tf.PhiConfig(**(DECODER | dict(num_key_value_heads=4)))),
    "gpt2": lambda: causal(tf.GPT2LMHeadModel, tf.GPT2Config(
        vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    "gpt_neox": lambda: causal(tf.GPTNeoXForCausalLM, tf.GPTNeoXConfig(**SIZES, max_position_embeddings=64)),
    "bert": lambda: masked(tf.BertForMaskedLM, tf.BertConfig(**ENCODER)),
    "roberta": lambda: masked(tf.RobertaForMaskedLM, tf.RobertaConfig(**ENCODER), position_ids=positions()),
    "distilbert": lambda: masked(tf.DistilBertForMaskedLM, tf.DistilBertConfig(
        vocab_size=WORDS, dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=64, dropout=0.0,
        attention_dropout=0.0)),
    "t5": lambda: masked(tf.T5ForConditionalGeneration, tf.T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
        use_cache=False), decoder_input_ids=ids(seed=2)),
    "vit": lambda: vision(tf.ViTForImageClassification, tf.ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), 16),
    "resnet": lambda: vision(tf.ResNetForImageClassification, tf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"), 32),
}


def build(name):
    """The family's model, in training mode, with the same weights each time, and its example."""
    torch.manual_seed(0)
    module, example = FAMILIES[name]()
    return module.train(), example
