// Pre-norm decoder with RMS norms, rotary positions, grouped KV heads and SwiGLU. Touvron et al. 2023,
// arXiv:2302.13971; names and layout of the tensors as in transformers.
#include "models/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/blocks/attention.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/linear.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

constexpr const char* kInvFreq = "rope.inv_freq";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

std::string layer_name(int64_t layer) { return "model.layers." + std::to_string(layer); }

class Decoder final : public LanguageModel {
 public:
  explicit Decoder(DecoderConfig config) : c_(std::move(config)) {
    vocab_size_ = c_.vocab_size;
    max_positions_ = c_.max_position_embeddings;
    unknown_fields_ = c_.unknown_fields;
    add_matrix(kEmbedding, ParameterKind::kTable, c_.vocab_size, c_.hidden_size);
    for (int64_t i = 0; i < c_.num_hidden_layers; ++i) {
      const size_t first = parameters_.size();
      add_layer_parameters(layer_name(i));
      put_in_block(first, i);
    }
    add_norm("model.norm.weight", c_.hidden_size);
    num_labels_ = c_.num_labels;
    const bool tied = num_labels_ == 0 && c_.tie_word_embeddings;
    if (num_labels_ > 0) add_matrix(kScore, ParameterKind::kLinear, num_labels_, c_.hidden_size);
    if (num_labels_ == 0 && !tied) add_matrix(kHead, ParameterKind::kLinear, c_.vocab_size, c_.hidden_size);
    if (rotates())
      constants_.push_back({kInvFreq, ir::Shape{c_.head_dim / 2}, c_.rope.inverse_frequencies(c_.head_dim)});
  }

  ValueId stream(Builder& b, const Forward& forward) const override {
    ValueId x;
    {
      const auto scope = b.scope("embed_tokens");
      x = embed(b, *this, kEmbedding, forward.tokens, c_.pad_token_id);
    }
    ValueId table;
    if (rotates())
      table = ops::rope_table(b, read_constant(b, kInvFreq), positions(b, forward),
                              b.type(forward.tokens).shape.dim(1), c_.rope.attention_factor);
    for (int64_t i = 0; i < c_.num_hidden_layers; ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "layers." + std::to_string(i));
      x = block(b, forward, x, table, i);
    }
    return x;
  }

  ValueId final_norm(Builder& b, ValueId x) const override { return norm(b, x, "model.norm.weight"); }

  ValueId head(Builder& b, ValueId hidden) const override {
    if (num_labels_ > 0) return score(b, hidden);
    const auto scope = b.scope("lm_head");
    return linear(b, *this, {.weight = c_.tie_word_embeddings ? kEmbedding : kHead, .adapted = kHead},
                  hidden);
  }

  [[nodiscard]] std::optional<TiedHead> tied_head() const override {
    const bool tied = num_labels_ == 0 && c_.tie_word_embeddings;
    return tied ? std::optional(TiedHead{kHead, kEmbedding}) : std::nullopt;
  }
  [[nodiscard]] std::string_view base_prefix() const override { return "model."; }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return name.ends_with("rotary_emb.inv_freq") || (num_labels_ > 0 && name == kHead);
  }

 private:
  [[nodiscard]] bool rotates() const { return std::ranges::count(c_.rope_layers, true) > 0; }

  void add_matrix(const std::string& name, ParameterKind kind, int64_t rows, int64_t columns) {
    const ir::Shape shape{rows, columns};
    parameters_.push_back({name, kind, shape, Init::kNormal, c_.initializer_range, {{name, 0, shape}}});
  }
  void add_norm(const std::string& name, int64_t size) {
    const ir::Shape shape{size};
    parameters_.push_back({name, ParameterKind::kVector, shape, Init::kOnes, 0.0, {{name, 0, shape}}});
  }

  /// Projections that one GEMM computes: their rows lie one after the other.
  struct Part {
    const char* name;
    int64_t rows;
  };
  void add_joined(const std::string& prefix, const std::string& joined, std::initializer_list<Part> parts,
                  int64_t columns, bool bias) {
    Parameter weight{
        prefix + joined + ".weight", ParameterKind::kLinear, {}, Init::kNormal, c_.initializer_range, {}};
    Parameter offset{prefix + joined + ".bias", ParameterKind::kVector, {}, Init::kZeros, 0.0, {}};
    int64_t rows = 0;
    for (const Part& part : parts) {
      weight.views.push_back({prefix + part.name + ".weight", rows, ir::Shape{part.rows, columns}});
      offset.views.push_back({prefix + part.name + ".bias", rows, ir::Shape{part.rows}});
      rows += part.rows;
    }
    weight.shape = ir::Shape{rows, columns};
    offset.shape = ir::Shape{rows};
    parameters_.push_back(std::move(weight));
    if (bias) parameters_.push_back(std::move(offset));
  }

  void add_layer_parameters(const std::string& layer) {
    const std::string attention = layer + ".self_attn.", mlp = layer + ".mlp.";
    const int64_t q = c_.num_attention_heads * c_.head_dim;
    const int64_t kv = c_.num_key_value_heads * c_.head_dim;
    add_norm(layer + ".input_layernorm.weight", c_.hidden_size);
    add_joined(attention, "qkv_proj", {{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}}, c_.hidden_size,
               c_.qkv_bias);
    if (c_.qk_norm) add_norm(attention + "q_norm.weight", c_.head_dim);
    if (c_.qk_norm) add_norm(attention + "k_norm.weight", c_.head_dim);
    add_joined(attention, "o_proj", {{"o_proj", c_.hidden_size}}, q, c_.o_bias);
    add_norm(layer + ".post_attention_layernorm.weight", c_.hidden_size);
    add_joined(mlp, "gate_up_proj", {{"gate_proj", c_.intermediate_size}, {"up_proj", c_.intermediate_size}},
               c_.hidden_size, c_.mlp_bias);
    add_joined(mlp, "down_proj", {{"down_proj", c_.hidden_size}}, c_.intermediate_size, c_.mlp_bias);
  }

  ValueId norm(Builder& b, ValueId x, const std::string& weight) const {
    return rms_norm(b, *this, x, weight, c_.rms_norm_eps);
  }
  static LinearSpec projection(const std::string& name, bool bias) {
    return {.weight = name + ".weight", .bias = bias ? name + ".bias" : ""};
  }

  ValueId block(Builder& b, const Forward& forward, ValueId x, ValueId table, int64_t index) const {
    const std::string layer = layer_name(index);
    {
      const auto scope = b.scope("self_attn");
      const ValueId normed = norm(b, x, layer + ".input_layernorm.weight");
      x = ops::add(b, x, attention(b, *this, forward, attention_of(index, table), normed));
    }
    const auto scope = b.scope("mlp");
    const ValueId normed = norm(b, x, layer + ".post_attention_layernorm.weight");
    const MlpSpec mlp{projection(layer + ".mlp.gate_up_proj", c_.mlp_bias),
                      projection(layer + ".mlp.down_proj", c_.mlp_bias)};
    return ops::add(
        b, x,
        gated_mlp(b, *this, mlp, normed, c_.intermediate_size, {Activation::Kind::kSilu}, forward.noise()));
  }

  [[nodiscard]] AttentionSpec attention_of(int64_t index, ValueId table) const {
    const std::string prefix = layer_name(index) + ".self_attn.";
    AttentionSpec spec{.qkv = projection(prefix + "qkv_proj", c_.qkv_bias),
                       .out = projection(prefix + "o_proj", c_.o_bias),
                       .heads = c_.num_attention_heads,
                       .kv_heads = c_.num_key_value_heads,
                       .head_dim = c_.head_dim,
                       .options = {.scale = 1.0 / std::sqrt(static_cast<double>(c_.head_dim)),
                                   .window = c_.windows[static_cast<size_t>(index)],
                                   .dropout = c_.attention_dropout},
                       .layer = index};
    if (c_.qk_norm) spec.q_norm = prefix + "q_norm.weight", spec.k_norm = prefix + "k_norm.weight";
    spec.norm_eps = c_.rms_norm_eps;
    if (c_.rope_layers[static_cast<size_t>(index)]) spec.rope = table;
    return spec;
  }

  DecoderConfig c_;
};

}  // namespace

std::unique_ptr<LanguageModel> make_decoder(DecoderConfig config) {
  return std::make_unique<Decoder>(std::move(config));
}

}  // namespace plimsoll::models
