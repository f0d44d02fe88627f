// RoBERTa: BERT's encoder whose positions begin behind the padding token's id and whose head has a layer of
// its own. Liu et al. 2019, arXiv:1907.11692.
#include <fmt/format.h>

#include "models/families.h"
#include "models/text_encoder.h"

namespace plimsoll::models {

Result<std::unique_ptr<Model>> make_roberta_model(const io::ConfigJson& config, int64_t vocab_size) {
  PLIMSOLL_ASSIGN(TextEncoderConfig c, read_text_encoder(config, vocab_size, /*pad_token=*/1));
  c.prefix = "roberta.";
  if (!c.pad_token) return config.error("pad_token_id", "a token: positions are counted from it");
  c.first_position = *c.pad_token + 1;
  if (c.first_position >= c.position_rows)
    return config.error(
        "max_position_embeddings",
        fmt::format("more than pad_token_id + 1 ({}), where positions begin", c.first_position));
  // The bare model has a pooler; classifiers are without.
  c.head.dense = c.num_labels > 0 ? "classifier.dense" : "roberta.pooler.dense";
  c.head.out = "classifier.out_proj";
  c.head.drops_features = true;
  c.ignored = {"roberta.embeddings.position_ids",
               "roberta.embeddings.token_type_ids",
               "lm_head.",
               "qa_outputs.",
               "classifier.weight",
               "classifier.bias"};
  if (c.num_labels > 0) c.ignored.emplace_back("roberta.pooler.");
  PLIMSOLL_TRY(take_masked_head(config,
                                {.dense = "lm_head.dense",
                                 .norm = "lm_head.layer_norm",
                                 .bias = "lm_head.bias",
                                 .table = "lm_head.decoder",
                                 .activation = {Activation::Kind::kGelu}},
                                {"roberta.embeddings.position_ids", "roberta.embeddings.token_type_ids",
                                 "roberta.pooler.", "lm_head.decoder.bias", "qa_outputs.", "classifier."},
                                c));
  take_span_head(config, /*dropout=*/0,
                 {"roberta.embeddings.position_ids", "roberta.embeddings.token_type_ids", "roberta.pooler.",
                  "lm_head.", "classifier."},
                 c);
  PLIMSOLL_ASSIGN(c.unknown_fields, finish_text_encoder(config));
  return std::unique_ptr<Model>(make_text_encoder(std::move(c)));
}

namespace {

Result<std::unique_ptr<Model>> make_roberta(const io::ConfigJson& config) {
  return make_roberta_model(config, /*vocab_size=*/50265);
}

constexpr Preset kRobertaPresets[] = {
    {"roberta-base", "FacebookAI/roberta-base", "MIT", 124'645'632,
     R"({"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 514, "type_vocab_size": 1,
      "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2})"},
    {"roberta-large", "FacebookAI/roberta-large", "MIT", 355'359'744,
     R"({"model_type": "roberta", "vocab_size": 50265, "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 514, "type_vocab_size": 1,
      "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2})"},
};

constexpr std::string_view kRobertaLoraTargets[] = {"query", "value"};

constexpr Family kRobertaFamily{
    .model_type = "roberta",
    .class_name = "Roberta",
    .causal_class = "Model",
    .make = make_roberta,
    .lora_targets = kRobertaLoraTargets,
    .fields = {.kv_heads = {}, .lists_of_layers = {}},
    .sample = R"({"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta",
    "vocab_size": 211, "hidden_size": 60, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 84, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 130, "type_vocab_size": 1,
    "initializer_range": 0.1, "layer_norm_eps": 1e-05, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
    "classifier_dropout": null, "num_labels": 5})",
    .presets = kRobertaPresets};

}  // namespace

const Family& roberta_family() { return kRobertaFamily; }

}  // namespace plimsoll::models
