// BERT: an encoder with token types, whose classifier reads the pooler's output of the first token. Devlin et
// al. 2018, arXiv:1810.04805.
#include "models/families.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

Result<std::unique_ptr<Model>> make_bert(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(TextEncoderConfig c, read_text_encoder(config, /*vocab_size=*/30522, /*pad_token=*/0));
  c.prefix = "bert.";
  c.head.dense = "bert.pooler.dense";
  c.head.out = "classifier";
  c.ignored = {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "cls.", "qa_outputs."};
  PLIMSOLL_TRY(take_masked_head(
      config,
      {.dense = "cls.predictions.transform.dense",
       .norm = "cls.predictions.transform.LayerNorm",
       .bias = "cls.predictions.bias",
       .table = "cls.predictions.decoder",
       .activation = c.activation},
      {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "bert.pooler.",
       "cls.predictions.decoder.bias", "cls.seq_relationship.", "classifier.", "qa_outputs."},
      c));
  take_span_head(config, /*dropout=*/0,
                 {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "bert.pooler.", "cls.",
                  "classifier."},
                 c);
  PLIMSOLL_ASSIGN(c.unknown_fields, finish_text_encoder(config));
  return std::unique_ptr<Model>(make_text_encoder(std::move(c)));
}

constexpr Preset kBertPresets[] = {
    {"bert-base-uncased", "google-bert/bert-base-uncased", "Apache 2.0", 109'482'240,
     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
      "layer_norm_eps": 1e-12, "pad_token_id": 0})"},
    {"bert-base-cased", "google-bert/bert-base-cased", "Apache 2.0", 108'310'272,
     R"({"model_type": "bert", "vocab_size": 28996, "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
      "layer_norm_eps": 1e-12, "pad_token_id": 0})"},
    {"bert-large-uncased", "google-bert/bert-large-uncased", "Apache 2.0", 335'141'888,
     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
      "layer_norm_eps": 1e-12, "pad_token_id": 0})"},
    {"minilm-l6", "sentence-transformers/all-MiniLM-L6-v2", "Apache 2.0", 22'713'216,
     R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6,
      "num_attention_heads": 12, "intermediate_size": 1536, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
      "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
      "layer_norm_eps": 1e-12, "pad_token_id": 0})"},
};

constexpr std::string_view kBertLoraTargets[] = {"query", "value"};

constexpr Family kBertFamily{
    .model_type = "bert",
    .class_name = "Bert",
    .causal_class = "Model",
    .make = make_bert,
    .lora_targets = kBertLoraTargets,
    .fields = {.kv_heads = {}, .lists_of_layers = {}},
    .sample = R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 211,
    "hidden_size": 60, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 84,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 128, "type_vocab_size": 3, "initializer_range": 0.1, "layer_norm_eps": 1e-12,
    "pad_token_id": 0, "classifier_dropout": null, "num_labels": 5})",
    .presets = kBertPresets};

}  // namespace

const Family& bert_family() { return kBertFamily; }

}  // namespace plimsoll::models
