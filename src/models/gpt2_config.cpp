// GPT-2's config.json. Everything that GPT-2's descendants switched on by a flag is refused by the flag's
// name.
#include "models/gpt2_config.h"

#include <fmt/format.h>

namespace plimsoll {
namespace {

Status refuse_unsupported(const ConfigJson& config) {
  constexpr std::string_view kDropout =
      "dropout is not supported: set model.overrides={resid_pdrop: 0, embd_pdrop: 0, attn_pdrop: 0}";
  for (const std::string_view field : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    PLIMSOLL_TRY(config.require(field, Tree::of(int64_t{0}), kDropout));
  PLIMSOLL_TRY(config.require("activation_function", Tree::of(std::string("gelu_new")),
                              "only gelu_new is supported here"));
  for (const std::string_view field : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn",
                                       "add_cross_attention", "is_encoder_decoder"})
    PLIMSOLL_TRY(config.require(field, Tree::of(false), "what it changes is not supported"));
  for (const std::string_view field : {"scale_attn_weights", "tie_word_embeddings"})
    PLIMSOLL_TRY(config.require(field, Tree::of(true), "what it changes is not supported"));
  return config.require_absent({"quantization_config"});
}

}  // namespace

int64_t Gpt2Config::num_parameters() const {
  const int64_t attention = 4 * n_embd * n_embd + 4 * n_embd;
  const int64_t mlp = 2 * n_embd * n_inner + n_inner + n_embd;
  return (vocab_size + n_positions) * n_embd + n_layer * (attention + mlp + 4 * n_embd) + 2 * n_embd;
}

Result<Gpt2Config> parse_gpt2_config(const ConfigJson& config) {
  Gpt2Config c;
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  if (type != "gpt2") return config.error("model_type", "gpt2");
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", {1, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.n_embd, config.integer("n_embd", {1, int64_t{1} << 20}));
  PLIMSOLL_ASSIGN(c.n_layer, config.integer("n_layer", {1, 512}));
  PLIMSOLL_ASSIGN(c.n_head, config.integer("n_head", {1, 1 << 16}));
  PLIMSOLL_ASSIGN(c.n_positions, config.integer("n_positions", {1, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.n_inner, config.integer("n_inner", {1, int64_t{1} << 22}, 4 * c.n_embd));
  if (c.n_embd % c.n_head != 0)
    return config.error("n_head", fmt::format("a divisor of n_embd ({})", c.n_embd));
  PLIMSOLL_ASSIGN(c.layer_norm_epsilon, config.number("layer_norm_epsilon", {0.0, 1.0}, 1e-5));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_TRY(refuse_unsupported(config));
  PLIMSOLL_ASSIGN(c.bos_token_id, config.optional_integer("bos_token_id", {0, int64_t{1} << 24}));
  PLIMSOLL_ASSIGN(c.eos_token_ids, config.integers("eos_token_id", {0, int64_t{1} << 24}));
  config.ignore({"torch_dtype", "dtype", "use_cache", "transformers_version", "_name_or_path", "n_ctx",
                 "task_specific_params", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj", "pad_token_id",
                 "gradient_checkpointing"});
  c.unknown_fields = config.unread_fields();
  return c;
}

}  // namespace plimsoll
