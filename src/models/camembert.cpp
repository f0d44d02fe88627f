// CamemBERT: RoBERTa for French. Martin et al. 2019, arXiv:1911.03894.
#include "models/families.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

Result<std::unique_ptr<Model>> make_camembert(const io::ConfigJson& config) {
  return make_roberta_model(config, /*vocab_size=*/30522);
}

constexpr Preset kCamembertPresets[] = {
    {"camembert-base", "almanach/camembert-base", "MIT", 110'621'952,
     R"({"model_type": "camembert", "vocab_size": 32005, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 514, "type_vocab_size": 1,
      "layer_norm_eps": 1e-05, "bos_token_id": 5, "pad_token_id": 1, "eos_token_id": 6})"},
};

constexpr std::string_view kCamembertLoraTargets[] = {"query", "value"};

constexpr Family kCamembertFamily{
    .model_type = "camembert",
    .class_name = "Camembert",
    .causal_class = "Model",
    .make = make_camembert,
    .lora_targets = kCamembertLoraTargets,
    .fields = {.kv_heads = {}, .lists_of_layers = {}},
    .sample = R"({"architectures": ["CamembertForSequenceClassification"], "model_type": "camembert",
    "vocab_size": 211, "hidden_size": 60, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 84, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 130, "type_vocab_size": 1,
    "initializer_range": 0.1, "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
    "classifier_dropout": null, "num_labels": 5})",
    .presets = kCamembertPresets};

}  // namespace

const Family& camembert_family() { return kCamembertFamily; }

}  // namespace plimsoll::models
