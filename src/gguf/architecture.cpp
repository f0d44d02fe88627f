// The names are llama.cpp's (gguf-py/gguf/constants.py and tensor_mapping.py list them); its converter says
// which sizes are written for which family.
#include "gguf/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "models/families.h"
#include "models/gpt2_config.h"

namespace plimsoll::gguf {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 4> kDecoderTop = {{{"model.embed_tokens", "token_embd"},
                                              {"model.norm", "output_norm"},
                                              {"lm_head", "output"},
                                              {"model.layers.", "blk."}}};
constexpr std::array<Pair, 11> kDecoderLayer = {{{"input_layernorm", "attn_norm"},
                                                 {"post_attention_layernorm", "ffn_norm"},
                                                 {"self_attn.q_proj", "attn_q"},
                                                 {"self_attn.k_proj", "attn_k"},
                                                 {"self_attn.v_proj", "attn_v"},
                                                 {"self_attn.o_proj", "attn_output"},
                                                 {"self_attn.q_norm", "attn_q_norm"},
                                                 {"self_attn.k_norm", "attn_k_norm"},
                                                 {"mlp.gate_proj", "ffn_gate"},
                                                 {"mlp.up_proj", "ffn_up"},
                                                 {"mlp.down_proj", "ffn_down"}}};
constexpr std::array<Pair, 5> kGpt2Top = {{{"transformer.wte", "token_embd"},
                                           {"transformer.wpe", "position_embd"},
                                           {"transformer.ln_f", "output_norm"},
                                           {"lm_head", "output"},
                                           {"transformer.h.", "blk."}}};
constexpr std::array<Pair, 6> kGpt2Layer = {{{"ln_1", "attn_norm"},
                                             {"ln_2", "ffn_norm"},
                                             {"attn.c_attn", "attn_qkv"},
                                             {"attn.c_proj", "attn_output"},
                                             {"mlp.c_fc", "ffn_up"},
                                             {"mlp.c_proj", "ffn_down"}}};

Error no_place(std::string what, std::string hint) {
  return Error{ErrorCode::kInvalidArgument, "gguf: " + what, {}, std::move(hint)};
}

std::string_view find(std::span<const Pair> pairs, std::string_view name) {
  for (const auto& [theirs, ours] : pairs)
    if (theirs == name) return ours;
  PLIMSOLL_CHECK(false, std::string(name));
  return {};
}

/// What the files have no key for: their programs go by what the published models are.
Status check_fixed(const models::DecoderConfig& c, const std::string& model_type) {
  if (c.qk_norm && c.qkv_bias)
    return no_place("llama.cpp has no qwen3 with attention_bias", "export a model without these biases");
  if (model_type != "smollm3") return Ok{};
  if (c.qkv_bias || c.mlp_bias)
    return no_place("llama.cpp has no smollm3 with attention_bias or mlp_bias",
                    "export a model without these biases");
  for (size_t i = 0; i < c.rope_layers.size(); ++i)
    if (c.rope_layers[i] != ((i + 1) % 4 != 0))
      return no_place(
          "llama.cpp's smollm3 leaves out positions in every fourth layer",
          "no_rope_layers or no_rope_layer_interval says otherwise: it would compute another model");
  return Ok{};
}

/// The factor of each pair's wavelength, in fp32 step by step as llama.cpp's converter computes it.
std::vector<float> llama3_factors(const models::RopeConfig& rope, int64_t head_dim) {
  models::RopeConfig plain;
  plain.theta = rope.theta;
  const auto factor = static_cast<float>(rope.factor), low = static_cast<float>(rope.low_freq_factor),
             high = static_cast<float>(rope.high_freq_factor),
             length = static_cast<float>(rope.original_max_position_embeddings);
  std::vector<float> factors;
  for (const float frequency : plain.inverse_frequencies(head_dim)) {
    const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
    const float smooth = (length / wavelength - low) / (high - low);
    factors.push_back(wavelength < length / high  ? 1.0F
                      : wavelength > length / low ? factor
                                                  : 1.0F / ((1.0F - smooth) / factor + smooth));
  }
  return factors;
}

}  // namespace

Result<Architecture> Architecture::create(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  if (type == "gpt2") return of_gpt2(config);
  if (type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3" || type == "smollm3")
    return of_decoder(config, type);
  return no_place("the family " + type + " cannot be exported",
                  "families that can: gpt2, llama, mistral, qwen2, qwen3, smollm3");
}

void Architecture::u32(std::string_view key, int64_t value) {
  entries_.push_back({std::string(key), Entry::Kind::kU32, static_cast<double>(value)});
}
void Architecture::f32(std::string_view key, double value) {
  entries_.push_back({std::string(key), Entry::Kind::kF32, value});
}
void Architecture::text(std::string_view key, std::string value) {
  entries_.push_back({std::string(key), Entry::Kind::kText, 0, std::move(value)});
}

void Architecture::describe(Metadata& metadata) const {
  for (const Entry& e : entries_) {
    const std::string key = name_ + "." + e.key;
    if (e.kind == Entry::Kind::kU32)
      metadata.add_u32(key, static_cast<int64_t>(e.number));
    else if (e.kind == Entry::Kind::kF32)
      metadata.add_f32(key, e.number);
    else
      metadata.add_text(key, e.text);
  }
}

Status Architecture::add_rope(const models::RopeConfig& rope, int64_t head_dim) {
  f32("rope.freq_base", rope.theta);
  switch (rope.kind) {
    case models::RopeConfig::Kind::kDefault:
      return Ok{};
    case models::RopeConfig::Kind::kDynamic:
      return no_place("llama.cpp has no rope_type dynamic", "export a model with another rope type");
    case models::RopeConfig::Kind::kLlama3:
      rope_factors_ = llama3_factors(rope, head_dim);
      return Ok{};
    case models::RopeConfig::Kind::kLinear:
      text("rope.scaling.type", "linear");
      f32("rope.scaling.factor", rope.factor);
      return Ok{};
    case models::RopeConfig::Kind::kYarn:
      break;
  }
  // llama.cpp scales cosines and sines by 0.1 ln(factor) + 1 itself, and its ramp is truncated.
  if (!rope.truncate || std::fabs(rope.attention_factor - (0.1 * std::log(rope.factor) + 1)) > 1e-6)
    return no_place("llama.cpp has yarn with truncate and the attention factor 0.1 ln(factor) + 1 alone",
                    "the rope settings of config.json say otherwise: it would compute another model");
  text("rope.scaling.type", "yarn");
  f32("rope.scaling.factor", rope.factor);
  u32("rope.scaling.original_context_length", rope.original_max_position_embeddings);
  if (rope.beta_fast != 32) f32("rope.scaling.yarn_beta_fast", rope.beta_fast);
  if (rope.beta_slow != 1) f32("rope.scaling.yarn_beta_slow", rope.beta_slow);
  return Ok{};
}

Result<Architecture> Architecture::of_decoder(const io::ConfigJson& config, const std::string& model_type) {
  const bool is_llama = model_type == "llama" || model_type == "mistral" || model_type == "smollm3";
  PLIMSOLL_ASSIGN(const models::DecoderConfig c, models::find_family(model_type)->parse(config));
  PLIMSOLL_TRY(check_fixed(c, model_type));
  Architecture a;
  a.name_ = model_type == "mistral" ? "llama" : model_type;
  a.vocab_size_ = c.vocab_size;
  a.rotary_head_ = is_llama ? c.head_dim : 0;
  a.u32("block_count", c.num_hidden_layers);
  a.u32("context_length", c.max_position_embeddings);
  a.u32("embedding_length", c.hidden_size);
  a.u32("feed_forward_length", c.intermediate_size);
  a.u32("attention.head_count", c.num_attention_heads);
  a.u32("attention.head_count_kv", c.num_key_value_heads);
  PLIMSOLL_TRY(a.add_rope(c.rope, c.head_dim));
  a.f32("attention.layer_norm_rms_epsilon", c.rms_norm_eps);
  if (model_type != "qwen2" || c.head_dim * c.num_attention_heads != c.hidden_size ||
      config.has("head_dim")) {
    a.u32("attention.key_length", c.head_dim);
    a.u32("attention.value_length", c.head_dim);
  }
  if (is_llama) {
    a.u32("vocab_size", c.vocab_size);
    a.u32("rope.dimension_count", c.head_dim);
  }
  const bool slides = std::any_of(c.windows.begin(), c.windows.end(), [&](int64_t window) {
    return window > 0 && window < c.max_position_embeddings;
  });
  if (slides)
    a.notes_.emplace_back(
        "llama.cpp lets every layer of this family see all positions: beyond sliding_window its results "
        "differ");
  return a;
}

Result<Architecture> Architecture::of_gpt2(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const models::Gpt2Config c, models::parse_gpt2_config(config));
  if (c.gelu != ops::Gelu::kTanh || !c.scale_attn_weights || c.scale_attn_by_layer)
    return no_place(
        "llama.cpp has GPT-2 with activation gelu_new and scores scaled by the head alone",
        "activation_function, scale_attn_weights or scale_attn_by_inverse_layer_idx say otherwise");
  Architecture a;
  a.name_ = "gpt2";
  a.vocab_size_ = c.vocab_size;
  a.is_gpt2_ = true;
  a.u32("block_count", c.n_layer);
  a.u32("context_length", c.n_positions);
  a.u32("embedding_length", c.n_embd);
  a.u32("feed_forward_length", c.n_inner);
  a.u32("attention.head_count", c.n_head);
  a.f32("attention.layer_norm_epsilon", c.layer_norm_epsilon);
  return a;
}

TensorPlace Architecture::place(std::string_view tensor) const {
  const std::span<const Pair> top = is_gpt2_ ? std::span<const Pair>(kGpt2Top) : kDecoderTop;
  const std::span<const Pair> layer = is_gpt2_ ? std::span<const Pair>(kGpt2Layer) : kDecoderLayer;
  const size_t dot = tensor.rfind('.');
  PLIMSOLL_CHECK(dot != std::string_view::npos, std::string(tensor));
  const std::string kind(tensor.substr(dot));
  std::string_view module = tensor.substr(0, dot);
  if (!module.starts_with(top.back().first)) return {std::string(find(top, module)) + kind};
  module.remove_prefix(top.back().first.size());
  const size_t end = module.find('.');
  PLIMSOLL_CHECK(end != std::string_view::npos, std::string(tensor));
  const std::string_view part = module.substr(end + 1);
  TensorPlace place{fmt::format("blk.{}.{}{}", module.substr(0, end), find(layer, part), kind)};
  place.rows.transposed = is_gpt2_ && kind == ".weight" && part.find(".c_") != std::string_view::npos;
  if (part == "self_attn.q_proj" || part == "self_attn.k_proj") place.rows.rotary_head = rotary_head_;
  return place;
}

}  // namespace plimsoll::gguf
