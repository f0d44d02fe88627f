// GPT-2: pre-norm decoder with layer norms, learned positions, full heads and a GELU MLP. Radford et al.
// 2019; names as in transformers, whose Conv1D weights are [in, out]. The head is the embedding, transposed.
#include <cmath>
#include <string>

#include "models/blocks/attention.h"
#include "models/blocks/dropout.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/families.h"
#include "models/gpt2_config.h"
#include "models/linear.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

constexpr const char* kGpt2Embedding = "transformer.wte.weight";
constexpr const char* kGpt2Head = "lm_head.weight";

std::string gpt2_layer_name(int64_t layer) { return "transformer.h." + std::to_string(layer); }

class Gpt2 final : public LanguageModel {
 public:
  explicit Gpt2(Gpt2Config config) : c_(std::move(config)) {
    vocab_size_ = c_.vocab_size;
    max_positions_ = c_.n_positions;
    unknown_fields_ = c_.unknown_fields;
    add(kGpt2Embedding, ParameterKind::kTable, {c_.vocab_size, c_.n_embd}, Init::kNormal);
    add("transformer.wpe.weight", ParameterKind::kTable, {c_.n_positions, c_.n_embd}, Init::kNormal);
    for (int64_t i = 0; i < c_.n_layer; ++i) {
      const std::string layer = gpt2_layer_name(i);
      const size_t first = parameters_.size();
      add_norm(layer + ".ln_1");
      add_conv1d(layer + ".attn.c_attn", c_.n_embd, 3 * c_.n_embd, c_.initializer_range);
      add_conv1d(layer + ".attn.c_proj", c_.n_embd, c_.n_embd, residual_std());
      add_norm(layer + ".ln_2");
      add_conv1d(layer + ".mlp.c_fc", c_.n_embd, c_.n_inner, c_.initializer_range);
      add_conv1d(layer + ".mlp.c_proj", c_.n_inner, c_.n_embd, residual_std());
      put_in_block(first, i);
    }
    add_norm("transformer.ln_f");
    num_labels_ = c_.num_labels;
    const bool tied = num_labels_ == 0 && c_.tie_word_embeddings;
    if (num_labels_ > 0) add(kScore, ParameterKind::kLinear, {num_labels_, c_.n_embd}, Init::kNormal);
    if (num_labels_ == 0 && !tied)
      add(kGpt2Head, ParameterKind::kLinear, {c_.vocab_size, c_.n_embd}, Init::kNormal);
  }

  ValueId stream(Builder& b, const Forward& forward) const override {
    const ir::Shape shape = b.type(forward.tokens).shape;
    ValueId x;
    {
      const auto scope = b.scope("embeddings");
      ValueId places = positions(b, forward);
      if (!places.valid()) places = ops::positions(b, shape.dim(0), shape.dim(1));
      x = ops::add(b, embed(b, *this, kGpt2Embedding, forward.tokens),
                   embed(b, *this, "transformer.wpe.weight", places));
      x = dropout(b, forward.noise(), x, c_.embd_pdrop);
    }
    for (int64_t i = 0; i < c_.n_layer; ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "h." + std::to_string(i));
      x = block(b, forward, x, i);
    }
    return x;
  }

  ValueId final_norm(Builder& b, ValueId x) const override { return norm(b, x, "transformer.ln_f"); }

  ValueId head(Builder& b, ValueId hidden) const override {
    if (num_labels_ > 0) return score(b, hidden);
    const auto scope = b.scope("lm_head");
    return linear(b, *this,
                  {.weight = c_.tie_word_embeddings ? kGpt2Embedding : kGpt2Head, .adapted = kGpt2Head},
                  hidden);
  }

  [[nodiscard]] std::string_view base_prefix() const override { return "transformer."; }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           (num_labels_ > 0 && name == kGpt2Head);
  }
  [[nodiscard]] std::optional<TiedHead> tied_head() const override {
    const bool tied = num_labels_ == 0 && c_.tie_word_embeddings;
    return tied ? std::optional(TiedHead{kGpt2Head, kGpt2Embedding}) : std::nullopt;
  }

 private:
  /// The published initialisation: projections onto the residual stream are scaled by 1/sqrt(2 layers).
  [[nodiscard]] double residual_std() const {
    return c_.initializer_range / std::sqrt(2.0 * static_cast<double>(c_.n_layer));
  }

  void add(const std::string& name, ParameterKind kind, ir::Shape shape, Init init, double std = -1) {
    parameters_.push_back(
        {name, kind, shape, init, std < 0 ? c_.initializer_range : std, {{name, 0, shape}}});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", ParameterKind::kVector, {c_.n_embd}, Init::kOnes);
    add(name + ".bias", ParameterKind::kVector, {c_.n_embd}, Init::kZeros);
  }
  void add_conv1d(const std::string& name, int64_t in, int64_t out, double std) {
    add(name + ".weight", ParameterKind::kLinear, {in, out}, Init::kNormal, std);
    parameters_.back().transposed = true;
    add(name + ".bias", ParameterKind::kVector, {out}, Init::kZeros);
  }

  ValueId norm(Builder& b, ValueId x, const std::string& name) const {
    return layer_norm(b, *this, x, name, c_.layer_norm_epsilon);
  }
  static LinearSpec conv1d(const std::string& name) {
    return {.weight = name + ".weight", .bias = name + ".bias", .transposed = true};
  }

  ValueId block(Builder& b, const Forward& forward, ValueId x, int64_t index) const {
    const std::string layer = gpt2_layer_name(index);
    {
      const auto scope = b.scope("attn");
      const ValueId out = attention(b, *this, forward, attention_of(index), norm(b, x, layer + ".ln_1"));
      x = ops::add(b, x, dropout(b, forward.noise(), out, c_.resid_pdrop));
    }
    const auto scope = b.scope("mlp");
    const MlpSpec mlp{conv1d(layer + ".mlp.c_fc"), conv1d(layer + ".mlp.c_proj")};
    const ValueId out = gelu_mlp(b, *this, mlp, norm(b, x, layer + ".ln_2"), c_.gelu, forward.noise());
    return ops::add(b, x, dropout(b, forward.noise(), out, c_.resid_pdrop));
  }

  [[nodiscard]] AttentionSpec attention_of(int64_t index) const {
    const std::string prefix = gpt2_layer_name(index) + ".attn";
    const double scale = (c_.scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(c_.head_dim())) : 1.0) /
                         (c_.scale_attn_by_layer ? static_cast<double>(index + 1) : 1.0);
    return {.qkv = conv1d(prefix + ".c_attn"),
            .out = conv1d(prefix + ".c_proj"),
            .heads = c_.n_head,
            .kv_heads = c_.n_head,
            .head_dim = c_.head_dim(),
            .options = {.scale = scale, .dropout = c_.attn_pdrop},
            .layer = index};
  }

  Gpt2Config c_;
};

Result<std::unique_ptr<Model>> make_gpt2(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(Gpt2Config parsed, parse_gpt2_config(config));
  return std::unique_ptr<Model>(std::make_unique<Gpt2>(std::move(parsed)));
}

// Dropout stands at 0 in the presets, because pretraining runs leave it out.
constexpr Preset kGpt2Presets[] = {
    {"gpt2", "openai-community/gpt2", "MIT", 124'439'808,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-medium", "openai-community/gpt2-medium", "MIT", 354'823'168,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1024, "n_layer": 24, "n_head": 16,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-large", "openai-community/gpt2-large", "MIT", 774'030'080,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1280, "n_layer": 36, "n_head": 20,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    {"gpt2-xl", "openai-community/gpt2-xl", "MIT", 1'557'611'200,
     R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1600, "n_layer": 48, "n_head": 25,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
};

constexpr std::string_view kGpt2LoraTargets[] = {"c_attn"};

constexpr Family kGpt2Family{
    .model_type = "gpt2",
    .class_name = "GPT2",
    .causal_class = "LMHeadModel",
    .make = make_gpt2,
    .lora_targets = kGpt2LoraTargets,
    .fields = {.layers = {"num_hidden_layers", "n_layer"},
               .hidden = {"hidden_size", "n_embd"},
               .heads = {"num_attention_heads", "n_head"},
               .kv_heads = {},
               .inner = {"intermediate_size", "n_inner"},
               .positions = {"max_position_embeddings", "n_positions"}},
    .sample = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 211,
    "n_positions": 128, "n_embd": 60, "n_layer": 2, "n_head": 3, "n_inner": null,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "initializer_range": 0.1,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": true,
    "bos_token_id": 0, "eos_token_id": 0})",
    .presets = kGpt2Presets};

}  // namespace

const Family& gpt2_family() { return kGpt2Family; }

}  // namespace plimsoll::models
