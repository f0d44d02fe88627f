// GPT-2's config.json. What is not supported of that which its descendants switched on by a flag is refused
// by the flag's name.
#include "models/gpt2_config.h"

#include <fmt/format.h>

#include "io/label_fields.h"

namespace plimsoll::models {
namespace {

/// A size by the family's name or the one that all families share; both must agree where both stand.
Result<int64_t> size(const io::ConfigJson& config, std::string_view own, std::string_view common,
                     io::IntegerRange range) {
  if (!config.has(common)) return config.integer(own, range);
  PLIMSOLL_ASSIGN(const int64_t value, config.integer(common, range));
  PLIMSOLL_ASSIGN(const int64_t other, config.integer(own, range, value));
  if (other != value) return config.error(own, fmt::format("{}, as {} says", value, common));
  return value;
}

Status read_activation(const io::ConfigJson& config, Gpt2Config& c) {
  PLIMSOLL_ASSIGN(const std::string name, config.string("activation_function", "gelu_new"));
  const ops::GeluForm* form = ops::find_gelu_by_name(name);
  if (form == nullptr)
    return config.error("activation_function", "one of " + ops::gelu_names(),
                        "other activations are not supported");
  c.gelu = form->form;
  return Ok{};
}

Status read_switches(const io::ConfigJson& config, Gpt2Config& c) {
  constexpr io::NumberRange kDropoutRange = {0.0, 0.999};
  PLIMSOLL_ASSIGN(c.embd_pdrop, config.number("embd_pdrop", kDropoutRange, 0.1));
  PLIMSOLL_ASSIGN(c.resid_pdrop, config.number("resid_pdrop", kDropoutRange, 0.1));
  PLIMSOLL_ASSIGN(c.attn_pdrop, config.number("attn_pdrop", kDropoutRange, 0.1));
  PLIMSOLL_ASSIGN(c.tie_word_embeddings, config.boolean("tie_word_embeddings", true));
  PLIMSOLL_ASSIGN(c.scale_attn_weights, config.boolean("scale_attn_weights", true));
  PLIMSOLL_ASSIGN(c.scale_attn_by_layer, config.boolean("scale_attn_by_inverse_layer_idx", false));
  return Ok{};
}

Status refuse_unsupported_gpt2(const io::ConfigJson& config) {
  for (const std::string_view field : {"add_cross_attention", "is_encoder_decoder"})
    PLIMSOLL_TRY(config.require(field, io::Tree::of(false), "its effect is not supported"));
  return Ok{};
}

}  // namespace

int64_t Gpt2Config::num_parameters() const {
  const int64_t attention = 4 * n_embd * n_embd + 4 * n_embd;
  const int64_t mlp = 2 * n_embd * n_inner + n_inner + n_embd;
  const int64_t head = num_labels > 0 ? num_labels : tie_word_embeddings ? 0 : vocab_size;
  const int64_t tables = vocab_size + head + n_positions;
  return tables * n_embd + n_layer * (attention + mlp + 4 * n_embd) + 2 * n_embd;
}

Result<Gpt2Config> parse_gpt2_config(const io::ConfigJson& config) {
  Gpt2Config c;
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  if (type != "gpt2") return config.error("model_type", "gpt2");
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", {1, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.n_embd, size(config, "n_embd", "hidden_size", {1, int64_t{1} << 20}));
  PLIMSOLL_ASSIGN(c.n_layer, size(config, "n_layer", "num_hidden_layers", {1, 512}));
  PLIMSOLL_ASSIGN(c.n_head, size(config, "n_head", "num_attention_heads", {1, 1 << 16}));
  PLIMSOLL_ASSIGN(c.n_positions,
                  size(config, "n_positions", "max_position_embeddings", {1, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.n_inner, config.integer("n_inner", {1, int64_t{1} << 22}, 4 * c.n_embd));
  if (c.n_embd % c.n_head != 0)
    return config.error("n_head", fmt::format("a divisor of n_embd ({})", c.n_embd));
  PLIMSOLL_ASSIGN(c.layer_norm_epsilon, config.number("layer_norm_epsilon", {0.0, 1.0}, 1e-5));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_TRY(read_activation(config, c));
  PLIMSOLL_TRY(read_switches(config, c));
  PLIMSOLL_TRY(refuse_unsupported_gpt2(config));
  PLIMSOLL_ASSIGN(c.bos_token_id, config.optional_integer("bos_token_id", {0, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.eos_token_ids, config.integers("eos_token_id", {0, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  config.ignore({"torch_dtype", "dtype", "use_cache", "transformers_version", "_name_or_path", "n_ctx",
                 "task_specific_params", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj", "pad_token_id",
                 "gradient_checkpointing", "quantization_config",
                 // Another order of operations for half precision; scores and softmax are fp32 here anyway.
                 "reorder_and_upcast_attn"});
  c.unknown_fields = config.unread_fields();
  return c;
}

}  // namespace plimsoll::models
