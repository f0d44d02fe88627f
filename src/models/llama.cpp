// Llama: pre-norm decoder with RMS norms, rotary positions, grouped KV heads and SwiGLU. Touvron et al. 2023,
// arXiv:2302.13971; names and layout of the tensors as in transformers.
#include <cmath>
#include <string>

#include "models/llama_config.h"
#include "models/model.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

constexpr const char* kInvFreq = "rope.inv_freq";

std::string layer_name(int64_t layer) { return "model.layers." + std::to_string(layer); }

class Llama final : public Model {
 public:
  explicit Llama(LlamaConfig config) : c_(std::move(config)) {
    vocab_size_ = c_.vocab_size;
    max_positions_ = c_.max_position_embeddings;
    unknown_fields_ = c_.unknown_fields;
    add_matrix("model.embed_tokens.weight", c_.vocab_size, c_.hidden_size);
    for (int64_t i = 0; i < c_.num_hidden_layers; ++i) add_layer_parameters(layer_name(i));
    add_vector("model.norm.weight", c_.hidden_size, Init::kOnes);
    if (!c_.tie_word_embeddings) add_matrix("lm_head.weight", c_.vocab_size, c_.hidden_size);
    for (const Parameter& p : parameters_)
      if (p.shape.rank() == 2) num_matmul_parameters_ += p.shape.num_elements();
    if (!c_.tie_word_embeddings) num_matmul_parameters_ -= c_.vocab_size * c_.hidden_size;
    constants_.push_back({kInvFreq, ir::Shape{c_.head_dim / 2}, c_.rope.inverse_frequencies(c_.head_dim)});
  }

  ValueId logits(Builder& b, ValueId tokens) const override {
    const int64_t num_tokens = b.type(tokens).shape.dim(1);
    const ValueId embedding = read_parameter(b, "model.embed_tokens.weight");
    ValueId x;
    {
      const auto scope = b.scope("embed_tokens");
      x = ops::embedding(b, embedding, tokens);
    }
    const ValueId table = ops::rope_table(b, read_constant(b, kInvFreq), {}, num_tokens);
    for (int64_t i = 0; i < c_.num_hidden_layers; ++i) {
      const auto scope = b.scope("layers." + std::to_string(i));
      x = block(b, x, table, layer_name(i));
    }
    x = norm(b, x, "model.norm.weight");
    const auto scope = b.scope("lm_head");
    return ops::linear(b, x, c_.tie_word_embeddings ? embedding : read_parameter(b, "lm_head.weight"), {});
  }

 private:
  void add_matrix(const std::string& name, int64_t rows, int64_t columns) {
    const ir::Shape shape{rows, columns};
    parameters_.push_back({name, shape, Init::kNormal, c_.initializer_range, {{name, 0, shape}}});
  }
  void add_vector(const std::string& name, int64_t size, Init init) {
    parameters_.push_back({name, ir::Shape{size}, init, 0.0, {{name, 0, ir::Shape{size}}}});
  }

  /// Projections that one GEMM computes: their rows lie one after the other.
  struct Part {
    const char* name;
    int64_t rows;
  };
  void add_joined(const std::string& prefix, const std::string& joined, std::initializer_list<Part> parts,
                  int64_t columns, bool bias) {
    Parameter weight{prefix + joined + ".weight", {}, Init::kNormal, c_.initializer_range, {}};
    Parameter offset{prefix + joined + ".bias", {}, Init::kZeros, 0.0, {}};
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
    const int64_t q = c_.num_attention_heads * c_.head_dim;
    const int64_t kv = c_.num_key_value_heads * c_.head_dim;
    add_vector(layer + ".input_layernorm.weight", c_.hidden_size, Init::kOnes);
    add_joined(layer + ".self_attn.", "qkv_proj", {{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}},
               c_.hidden_size, c_.attention_bias);
    add_joined(layer + ".self_attn.", "o_proj", {{"o_proj", c_.hidden_size}}, q, c_.attention_bias);
    add_vector(layer + ".post_attention_layernorm.weight", c_.hidden_size, Init::kOnes);
    add_joined(layer + ".mlp.", "gate_up_proj",
               {{"gate_proj", c_.intermediate_size}, {"up_proj", c_.intermediate_size}}, c_.hidden_size,
               c_.mlp_bias);
    add_joined(layer + ".mlp.", "down_proj", {{"down_proj", c_.hidden_size}}, c_.intermediate_size,
               c_.mlp_bias);
  }

  ValueId norm(Builder& b, ValueId x, const std::string& weight) const {
    return ops::rms_norm(b, x, read_parameter(b, weight), c_.rms_norm_eps).y;
  }
  ValueId project(Builder& b, ValueId x, const std::string& name, bool bias) const {
    return ops::linear(b, x, read_parameter(b, name + ".weight"),
                       bias ? read_parameter(b, name + ".bias") : ValueId{});
  }

  ValueId block(Builder& b, ValueId x, ValueId table, const std::string& layer) const {
    {
      const auto scope = b.scope("self_attn");
      x = ops::add(b, x,
                   attention(b, norm(b, x, layer + ".input_layernorm.weight"), table, layer + ".self_attn."));
    }
    const auto scope = b.scope("mlp");
    return ops::add(b, x, mlp(b, norm(b, x, layer + ".post_attention_layernorm.weight"), layer + ".mlp."));
  }

  ValueId attention(Builder& b, ValueId x, ValueId table, const std::string& prefix) const {
    const auto& shape = b.type(x).shape;
    const int64_t batch = shape.dim(0), tokens = shape.dim(1), d = c_.head_dim;
    const int64_t heads = c_.num_attention_heads, kv_heads = c_.num_key_value_heads;
    const ValueId qkv = project(b, x, prefix + "qkv_proj", c_.attention_bias);
    const auto parts = ops::split(b, qkv, {heads * d, kv_heads * d, kv_heads * d});
    const ValueId q = ops::rope(b, ops::reshape(b, parts[0], {batch, tokens, heads, d}), table);
    const ValueId k = ops::rope(b, ops::reshape(b, parts[1], {batch, tokens, kv_heads, d}), table);
    const ValueId v = ops::reshape(b, parts[2], {batch, tokens, kv_heads, d});
    const ops::AttentionOptions options{1.0 / std::sqrt(static_cast<double>(d)), true,
                                        c_.sliding_window.value_or(0)};
    const ValueId out = ops::attention(b, q, k, v, {}, options).out;
    return project(b, ops::reshape(b, out, {batch, tokens, heads * d}), prefix + "o_proj", c_.attention_bias);
  }

  ValueId mlp(Builder& b, ValueId x, const std::string& prefix) const {
    const ValueId gate_up = project(b, x, prefix + "gate_up_proj", c_.mlp_bias);
    const auto parts = ops::split(b, gate_up, {c_.intermediate_size, c_.intermediate_size});
    return project(b, ops::mul(b, ops::silu(b, parts[0]), parts[1]), prefix + "down_proj", c_.mlp_bias);
  }

  LlamaConfig c_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_llama(const ConfigJson& config) {
  PLIMSOLL_ASSIGN(LlamaConfig parsed, parse_llama_config(config));
  return std::unique_ptr<Model>(std::make_unique<Llama>(std::move(parsed)));
}

}  // namespace plimsoll::models
