#include <fmt/format.h>

#include "io/label_fields.h"
#include "models/text_encoder.h"

namespace plimsoll::models {
namespace {

constexpr TextLayerNames kBertLayer = {.query = "attention.self.query",
                                       .key = "attention.self.key",
                                       .value = "attention.self.value",
                                       .out = "attention.output.dense",
                                       .attention_norm = "attention.output.LayerNorm",
                                       .up = "intermediate.dense",
                                       .down = "output.dense",
                                       .output_norm = "output.LayerNorm"};

constexpr io::NumberRange kDropout = {0.0, 0.999};

Status read_dropouts(const io::ConfigJson& config, TextEncoderConfig& c) {
  PLIMSOLL_ASSIGN(c.hidden_dropout, config.number("hidden_dropout_prob", kDropout, 0.1));
  PLIMSOLL_ASSIGN(c.attention_dropout, config.number("attention_probs_dropout_prob", kDropout, 0.1));
  PLIMSOLL_ASSIGN(c.head.dropout, config.number("classifier_dropout", kDropout, c.hidden_dropout));
  c.attention_output_dropout = c.hidden_dropout;
  return Ok{};
}

}  // namespace

Result<int64_t> read_size(const io::ConfigJson& config, std::string_view own, std::string_view common,
                          io::IntegerRange range, int64_t if_missing) {
  if (!config.has(common)) return config.integer(own, range, if_missing);
  PLIMSOLL_ASSIGN(const int64_t value, config.integer(common, range));
  PLIMSOLL_ASSIGN(const int64_t other, config.integer(own, range, value));
  if (other != value) return config.error(own, fmt::format("{}, as {} says", value, common));
  return value;
}

Result<TextEncoderConfig> read_text_encoder(const io::ConfigJson& config, int64_t vocab_size,
                                            int64_t pad_token) {
  TextEncoderConfig c;
  c.layers = "encoder.layer";
  c.names = kBertLayer;
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", {1, int64_t{1} << 24}, vocab_size));
  PLIMSOLL_ASSIGN(c.hidden, config.integer("hidden_size", {1, int64_t{1} << 20}, 768));
  PLIMSOLL_ASSIGN(c.num_layers, config.integer("num_hidden_layers", {1, 512}, 12));
  PLIMSOLL_ASSIGN(c.heads, config.integer("num_attention_heads", {1, 1 << 16}, 12));
  if (c.hidden % c.heads != 0)
    return config.error("num_attention_heads", fmt::format("a divisor of hidden_size ({})", c.hidden));
  PLIMSOLL_ASSIGN(c.inner, config.integer("intermediate_size", {1, int64_t{1} << 22}, 3072));
  PLIMSOLL_ASSIGN(c.position_rows, config.integer("max_position_embeddings", {1, int64_t{1} << 24}, 512));
  PLIMSOLL_ASSIGN(c.token_types, config.integer("type_vocab_size", {1, 1 << 16}, 2));
  PLIMSOLL_ASSIGN(c.pad_token, read_padding_row(config, c.vocab_size, pad_token));
  PLIMSOLL_ASSIGN(c.activation, read_activation(config, "hidden_act", "gelu"));
  PLIMSOLL_ASSIGN(c.eps, config.number("layer_norm_eps", {0.0, 1.0}, 1e-12));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_TRY(read_dropouts(config, c));
  PLIMSOLL_TRY(config.require("position_embedding_type", io::Tree::of(std::string("absolute")),
                              "only learned absolute positions are supported"));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  return c;
}

Status take_masked_head(const io::ConfigJson& config, MaskedHead head, std::vector<std::string> others,
                        TextEncoderConfig& c) {
  if (!io::is_masked_lm(config)) return Ok{};
  PLIMSOLL_TRY(config.require("tie_word_embeddings", io::Tree::of(true),
                              "a masked language model whose head has a table of its own is not supported"));
  c.ignored = std::move(others);
  c.masked = std::move(head);
  c.head = {};
  return Ok{};
}

void take_span_head(const io::ConfigJson& config, double dropout, std::vector<std::string> others,
                    TextEncoderConfig& c) {
  if (!io::is_question_answering(config)) return;
  c.ignored = std::move(others);
  c.head = {};
  c.head.out = "qa_outputs";
  c.head.dropout = dropout;
  c.answers = true;
  c.num_labels = 2;
}

Result<std::optional<int64_t>> read_padding_row(const io::ConfigJson& config, int64_t vocab_size,
                                                int64_t if_missing) {
  PLIMSOLL_ASSIGN(std::optional<int64_t> row,
                  config.optional_integer("pad_token_id", {-vocab_size, vocab_size - 1}));
  const bool left_out = config.fields().find("pad_token_id") == nullptr;
  if (left_out && if_missing < vocab_size) row = if_missing;
  if (row && *row < 0) *row += vocab_size;
  return row;
}

Result<std::vector<std::string>> finish_text_encoder(const io::ConfigJson& config) {
  for (const std::string_view field : {"is_decoder", "add_cross_attention", "is_encoder_decoder"})
    PLIMSOLL_TRY(config.require(field, io::Tree::of(false), "only encoders are supported"));
  const io::Tree* pruned = config.fields().find("pruned_heads");
  if (pruned != nullptr && !(pruned->members.empty() && pruned->items.empty()))
    return config.error("pruned_heads", "no heads", "models with pruned heads are not supported");
  PLIMSOLL_TRY(config.require_absent({"head_dim", "embedding_size"}));
  config.ignore({"architectures", "model_type", "torch_dtype", "dtype", "transformers_version",
                 "_name_or_path", "name_or_path", "quantization_config", "gradient_checkpointing",
                 "finetuning_task", "return_dict", "output_attentions", "output_hidden_states", "output_past",
                 "torchscript", "use_cache", "pruned_heads", "bos_token_id", "eos_token_id", "sep_token_id",
                 "cls_token_id", "mask_token_id", "tie_word_embeddings", "tie_weights_",
                 // The same numbers in parts.
                 "chunk_size_feed_forward",
                 // Of multilingual BERT's files; no class reads them.
                 "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type"});
  return config.unread_fields();
}

}  // namespace plimsoll::models
