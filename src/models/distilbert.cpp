// DistilBERT: half of BERT's layers, without token types and pooler. Sanh et al. 2019, arXiv:1910.01108.
#include <fmt/format.h>

#include "io/label_fields.h"
#include "models/families.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

constexpr TextLayerNames kDistilbertLayer = {.query = "attention.q_lin",
                                             .key = "attention.k_lin",
                                             .value = "attention.v_lin",
                                             .out = "attention.out_lin",
                                             .attention_norm = "sa_layer_norm",
                                             .up = "ffn.lin1",
                                             .down = "ffn.lin2",
                                             .output_norm = "output_layer_norm"};

Status read_sizes(const io::ConfigJson& config, TextEncoderConfig& c) {
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", {1, int64_t{1} << 24}, 30522));
  PLIMSOLL_ASSIGN(c.hidden, read_size(config, "dim", "hidden_size", {1, int64_t{1} << 20}, 768));
  PLIMSOLL_ASSIGN(c.num_layers, read_size(config, "n_layers", "num_hidden_layers", {1, 512}, 6));
  PLIMSOLL_ASSIGN(c.heads, read_size(config, "n_heads", "num_attention_heads", {1, 1 << 16}, 12));
  if (c.hidden % c.heads != 0) return config.error("n_heads", fmt::format("a divisor of dim ({})", c.hidden));
  PLIMSOLL_ASSIGN(c.inner, config.integer("hidden_dim", {1, int64_t{1} << 22}, 3072));
  PLIMSOLL_ASSIGN(c.position_rows, config.integer("max_position_embeddings", {1, int64_t{1} << 24}, 512));
  PLIMSOLL_ASSIGN(c.pad_token, read_padding_row(config, c.vocab_size, /*if_missing=*/0));
  return Ok{};
}

Status read_dropouts(const io::ConfigJson& config, TextEncoderConfig& c) {
  constexpr io::NumberRange kDropout = {0.0, 0.999};
  PLIMSOLL_ASSIGN(c.hidden_dropout, config.number("dropout", kDropout, 0.1));
  PLIMSOLL_ASSIGN(c.attention_dropout, config.number("attention_dropout", kDropout, 0.1));
  PLIMSOLL_ASSIGN(c.head.dropout, config.number("seq_classif_dropout", kDropout, 0.2));
  return Ok{};
}

Result<std::unique_ptr<Model>> make_distilbert(const io::ConfigJson& config) {
  TextEncoderConfig c;
  c.prefix = "distilbert.";
  c.layers = "transformer.layer";
  c.names = kDistilbertLayer;
  PLIMSOLL_TRY(read_sizes(config, c));
  PLIMSOLL_TRY(read_dropouts(config, c));
  PLIMSOLL_ASSIGN(c.activation, read_activation(config, "activation", "gelu"));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_TRY(config.require("sinusoidal_pos_embds", io::Tree::of(false),
                              "positions are learned; set it to false to train those of the files"));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  if (c.num_labels > 0) c.head.dense = "pre_classifier";
  c.head.out = "classifier";
  c.head.activation = {Activation::Kind::kRelu};
  c.ignored = {"distilbert.embeddings.position_ids", "vocab_transform.", "vocab_layer_norm.",
               "vocab_projector.", "qa_outputs."};
  if (c.num_labels == 0) c.ignored.emplace_back("pre_classifier.");
  PLIMSOLL_TRY(take_masked_head(
      config,
      {.dense = "vocab_transform",
       .norm = "vocab_layer_norm",
       .bias = "vocab_projector.bias",
       .table = "vocab_projector",
       .activation = c.activation},
      {"distilbert.embeddings.position_ids", "pre_classifier.", "classifier.", "qa_outputs."}, c));
  PLIMSOLL_ASSIGN(const double qa_dropout, config.number("qa_dropout", {0.0, 0.999}, 0.1));
  take_span_head(config, qa_dropout,
                 {"distilbert.embeddings.position_ids", "pre_classifier.", "classifier.", "vocab_transform.",
                  "vocab_layer_norm.", "vocab_projector."},
                 c);
  PLIMSOLL_ASSIGN(c.unknown_fields, finish_text_encoder(config));
  return std::unique_ptr<Model>(make_text_encoder(std::move(c)));
}

constexpr Preset kDistilbertPresets[] = {
    {"distilbert-base-uncased", "distilbert/distilbert-base-uncased", "Apache 2.0", 66'362'880,
     R"({"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12,
      "hidden_dim": 3072, "activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1,
      "seq_classif_dropout": 0.2, "max_position_embeddings": 512, "sinusoidal_pos_embds": false,
      "pad_token_id": 0})"},
};

constexpr std::string_view kDistilbertLoraTargets[] = {"q_lin", "v_lin"};

constexpr Family kDistilbertFamily{
    .model_type = "distilbert",
    .class_name = "DistilBert",
    .causal_class = "Model",
    .make = make_distilbert,
    .lora_targets = kDistilbertLoraTargets,
    .fields = {.layers = {"num_hidden_layers", "n_layers"},
               .hidden = {"hidden_size", "dim"},
               .heads = {"num_attention_heads", "n_heads"},
               .kv_heads = {},
               .inner = {"hidden_dim"},
               .lists_of_layers = {}},
    .sample = R"({"architectures": ["DistilBertForSequenceClassification"], "model_type": "distilbert",
    "vocab_size": 211, "dim": 60, "n_layers": 2, "n_heads": 3, "hidden_dim": 84, "activation": "gelu",
    "dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0, "max_position_embeddings": 128,
    "initializer_range": 0.1, "pad_token_id": 0, "num_labels": 5})",
    .presets = kDistilbertPresets};

}  // namespace

const Family& distilbert_family() { return kDistilbertFamily; }

}  // namespace plimsoll::models
