#include "models/modernbert_config.h"

#include <fmt/format.h>

#include "io/label_fields.h"
#include "models/decoder_config.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

constexpr io::NumberRange kDropout = {0.0, 0.999};

Status read_sizes(const io::ConfigJson& config, ModernBertConfig& c) {
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", {1, int64_t{1} << 24}, 50368));
  PLIMSOLL_ASSIGN(c.hidden, config.integer("hidden_size", {1, int64_t{1} << 20}, 768));
  PLIMSOLL_ASSIGN(c.num_layers, config.integer("num_hidden_layers", {1, 512}, 22));
  PLIMSOLL_ASSIGN(c.heads, config.integer("num_attention_heads", {1, 1 << 16}, 12));
  if (c.hidden % c.heads != 0)
    return config.error("num_attention_heads", fmt::format("a divisor of hidden_size ({})", c.hidden));
  if (c.hidden / c.heads % 2 != 0)
    return config.error("num_attention_heads",
                        fmt::format("heads of an even number of elements: {} is hidden_size over it, and "
                                    "rotation takes pairs",
                                    c.hidden / c.heads));
  PLIMSOLL_ASSIGN(c.inner, config.integer("intermediate_size", {1, int64_t{1} << 22}, 1152));
  PLIMSOLL_ASSIGN(c.positions, config.integer("max_position_embeddings", kPositionsRange, 8192));
  PLIMSOLL_ASSIGN(c.pad_token, read_padding_row(config, c.vocab_size, 50283));
  return Ok{};
}

bool is_null(const io::ConfigJson& config, std::string_view field) {
  return config.fields().find(field) != nullptr && !config.has(field);
}

/// layer_types, or every n-th layer from the first on sees all.
Status read_layers(const io::ConfigJson& config, ModernBertConfig& c) {
  constexpr std::string_view kEvery = "global_attn_every_n_layers";
  PLIMSOLL_ASSIGN(const int64_t every, config.integer(kEvery, {1, 512}, 3));
  PLIMSOLL_ASSIGN(const int64_t both_sides, config.integer("local_attention", kPositionsRange, 128));
  const int64_t window = both_sides / 2 + 1;
  for (int64_t i = 0; i < c.num_layers; ++i) c.windows.push_back(i % every != 0 ? window : 0);
  return read_layer_types(config, window, kEvery, c.windows);
}

/// transformers 5 has settings for each type of layer, `parameters`, 4 the two bases; scaling is of both.
Result<RopeConfig> read_rope(const io::ConfigJson& config, const std::optional<io::ConfigJson>& parameters,
                             std::string_view type, double theta, ModernBertConfig& c) {
  io::ConfigJson own(io::Tree::map(), config.source());
  if (parameters) {
    PLIMSOLL_ASSIGN(const auto of_type, parameters->object(type));
    if (of_type) own.set("rope_parameters", of_type->fields());
  }
  PLIMSOLL_ASSIGN(const auto scaling, config.object("rope_scaling"));
  if (scaling) own.set("rope_scaling", scaling->fields());
  PLIMSOLL_ASSIGN(ParsedRope parsed, parse_rope(own, c.positions, theta));
  for (const std::string& field : parsed.unknown_fields)
    c.unknown_fields.push_back(fmt::format("{} ({})", field, type));
  return parsed.rope;
}

Status read_ropes(const io::ConfigJson& config, ModernBertConfig& c) {
  constexpr io::NumberRange kTheta = {1.0, 1e12};
  PLIMSOLL_ASSIGN(const double full, config.number("global_rope_theta", kTheta, 160'000.0));
  // transformers 4 takes the other base where this one is null.
  const double otherwise = is_null(config, "local_rope_theta") ? full : 10'000.0;
  PLIMSOLL_ASSIGN(const double sliding, config.number("local_rope_theta", kTheta, otherwise));
  PLIMSOLL_ASSIGN(const auto parameters, config.object("rope_parameters"));
  PLIMSOLL_ASSIGN(c.rope, read_rope(config, parameters, "full_attention", full, c));
  PLIMSOLL_ASSIGN(c.sliding_rope, read_rope(config, parameters, "sliding_attention", sliding, c));
  if (parameters)
    for (const std::string& field : parameters->unread_fields())
      c.unknown_fields.push_back("rope_parameters." + field);
  return Ok{};
}

Status read_head(const io::ConfigJson& config, ModernBertConfig& c) {
  using enum ModernBertConfig::Head;
  PLIMSOLL_ASSIGN(c.head_bias, config.boolean("classifier_bias", false));
  PLIMSOLL_ASSIGN(c.head_activation, read_activation(config, "classifier_activation", "gelu"));
  PLIMSOLL_ASSIGN(c.head_dropout, config.number("classifier_dropout", kDropout, 0.0));
  PLIMSOLL_ASSIGN(c.decoder_bias, config.boolean("decoder_bias", true));
  PLIMSOLL_ASSIGN(const std::string pooling, config.string("classifier_pooling", "cls"));
  if (pooling != "cls" && pooling != "mean") return config.error("classifier_pooling", "cls or mean");
  c.pools_mean = pooling == "mean";
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  if (c.num_labels > 0) c.head = kClassifier;
  if (io::is_question_answering(config)) c.head = kSpans, c.num_labels = 2;
  if (!io::is_masked_lm(config)) return Ok{};
  c.head = kMasked;
  return config.require("tie_word_embeddings", io::Tree::of(true),
                        "a masked language model whose head has a table of its own is not supported");
}

}  // namespace

Result<ModernBertConfig> read_modernbert(const io::ConfigJson& config) {
  ModernBertConfig c;
  PLIMSOLL_TRY(read_sizes(config, c));
  PLIMSOLL_TRY(read_layers(config, c));
  PLIMSOLL_TRY(read_ropes(config, c));
  PLIMSOLL_ASSIGN(c.activation, read_activation(config, "hidden_activation", "gelu"));
  PLIMSOLL_ASSIGN(c.eps, config.number("norm_eps", {0.0, 1.0}, 1e-5));
  PLIMSOLL_ASSIGN(c.norm_bias, config.boolean("norm_bias", false));
  PLIMSOLL_ASSIGN(c.attention_bias, config.boolean("attention_bias", false));
  PLIMSOLL_ASSIGN(c.mlp_bias, config.boolean("mlp_bias", false));
  PLIMSOLL_ASSIGN(c.embedding_dropout, config.number("embedding_dropout", kDropout, 0.0));
  PLIMSOLL_ASSIGN(c.attention_dropout, config.number("attention_dropout", kDropout, 0.0));
  PLIMSOLL_ASSIGN(c.mlp_dropout, config.number("mlp_dropout", kDropout, 0.0));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  const double cutoff = is_null(config, "initializer_cutoff_factor") ? 3.0 : 2.0;  // as transformers
  PLIMSOLL_ASSIGN(c.initializer_cutoff, config.number("initializer_cutoff_factor", {1e-3, 1e3}, cutoff));
  PLIMSOLL_TRY(read_head(config, c));
  // How transformers computes the same, and what its older files said of it.
  config.ignore({"deterministic_flash_attn", "reference_compile", "repad_logits_with_grad",
                 "sparse_prediction", "sparse_pred_ignore_index", "position_embedding_type"});
  PLIMSOLL_ASSIGN(std::vector<std::string> unknown, finish_text_encoder(config));
  c.unknown_fields.insert(c.unknown_fields.end(), unknown.begin(), unknown.end());
  return c;
}

}  // namespace plimsoll::models
