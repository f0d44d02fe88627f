// XLM-RoBERTa: RoBERTa over a hundred languages. Conneau et al. 2019, arXiv:1911.02116.
#include "models/families.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

Result<std::unique_ptr<Model>> make_xlm_roberta(const io::ConfigJson& config) {
  return make_roberta_model(config, /*vocab_size=*/30522);
}

constexpr Preset kXlmRobertaPresets[] = {
    {"xlm-roberta-base", "FacebookAI/xlm-roberta-base", "MIT", 278'043'648,
     R"({"model_type": "xlm-roberta", "vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 514, "type_vocab_size": 1,
      "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2})"},
};

constexpr std::string_view kXlmRobertaLoraTargets[] = {"query", "value"};

constexpr Family kXlmRobertaFamily{
    .model_type = "xlm-roberta",
    .class_name = "XLMRoberta",
    .causal_class = "Model",
    .make = make_xlm_roberta,
    .lora_targets = kXlmRobertaLoraTargets,
    .fields = {.kv_heads = {}, .lists_of_layers = {}},
    .sample = R"({"architectures": ["XLMRobertaForSequenceClassification"], "model_type": "xlm-roberta",
    "vocab_size": 211, "hidden_size": 60, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 84, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 130, "type_vocab_size": 1,
    "initializer_range": 0.1, "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
    "classifier_dropout": null, "num_labels": 5})",
    .presets = kXlmRobertaPresets};

}  // namespace

const Family& xlm_roberta_family() { return kXlmRobertaFamily; }

}  // namespace plimsoll::models
