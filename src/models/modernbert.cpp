// ModernBERT: an encoder with rotated positions, gated MLPs, and layers of which most see a window on both
// sides. Warner et al. 2024, arXiv:2412.13663; names and layout of the tensors as in transformers' files.
//
//   words ─ norm ─ layers ─ norm ─ head
//   layer:  x ─ norm ─ attention ─ + x ─ norm ─ MLP ─ +      (the first layer has no norm before attention)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/blocks/attention.h"
#include "models/blocks/dropout.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/families.h"
#include "models/language_model.h"
#include "models/linear.h"
#include "models/modernbert_config.h"
#include "ops/batched_matmul.h"
#include "ops/ops.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;
using Head = ModernBertConfig::Head;

constexpr const char* kWords = "model.embeddings.tok_embeddings.weight";
constexpr const char* kFrequencies = "rope.inv_freq";
constexpr const char* kSlidingFrequencies = "rope.sliding_inv_freq";

/// The deviation of a normal distribution of deviation 1 whose values beyond ±cutoff are drawn again.
double truncated_deviation(double cutoff) {
  const double density = std::exp(-cutoff * cutoff / 2) / std::sqrt(2 * std::numbers::pi);
  return std::sqrt(1 - 2 * cutoff * density / std::erf(cutoff / std::numbers::sqrt2));
}

class ModernBert final : public LanguageModel {
 public:
  explicit ModernBert(ModernBertConfig config)
      : c_(std::move(config)), deviation_(c_.initializer_range * truncated_deviation(c_.initializer_cutoff)) {
    vocab_size_ = c_.vocab_size;
    max_positions_ = c_.positions;
    num_labels_ = c_.num_labels;
    unknown_fields_ = c_.unknown_fields;
    add(kWords, ParameterKind::kTable, {c_.vocab_size, c_.hidden}, Init::kNormal, deviation_);
    add_norm("model.embeddings.norm");
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const size_t first = parameters_.size();
      add_layer(i);
      put_in_block(first, i);
    }
    add_norm("model.final_norm");
    add_head();
    if (any_sees_all()) add_frequencies(kFrequencies, c_.rope);
    if (any_slides()) add_frequencies(kSlidingFrequencies, c_.sliding_rope);
  }

  [[nodiscard]] bool is_bidirectional() const override { return true; }

  ValueId stream(Builder& b, const Forward& forward) const override {
    ValueId x, tables[2];
    {
      const auto scope = b.scope("embeddings");
      x = norm(b, embed(b, *this, kWords, forward.tokens, c_.pad_token), "model.embeddings.norm");
      x = dropout(b, forward.noise(), x, c_.embedding_dropout);
    }
    {
      const auto scope = b.scope("rope");
      if (any_sees_all()) tables[0] = rope_table(b, forward, kFrequencies, c_.rope);
      if (any_slides()) tables[1] = rope_table(b, forward, kSlidingFrequencies, c_.sliding_rope);
    }
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "layers." + std::to_string(i));
      x = layer(b, forward, x, i, tables[window(i) > 0 ? 1 : 0]);
    }
    return x;
  }

  ValueId final_norm(Builder& b, ValueId stream) const override {
    const auto scope = b.scope("final_norm");
    return norm(b, stream, "model.final_norm");
  }
  ValueId head(Builder& b, ValueId hidden) const override {
    return has_masked_head() ? words(b, hidden) : scores(b, {}, hidden);
  }
  [[nodiscard]] bool has_masked_head() const override { return c_.head == Head::kMasked; }
  [[nodiscard]] bool has_span_head() const override { return c_.head == Head::kSpans; }
  ValueId span_logits(Builder& b, const Forward& forward) const override {
    return scores(b, forward, hidden(b, forward));
  }
  [[nodiscard]] std::optional<TiedHead> tied_head() const override {
    if (!has_masked_head()) return {};
    return TiedHead{kDecoder, kWords};
  }

  ValueId pooled_logits(Builder& b, const Forward& forward, ValueId /*last*/) const override {
    const ValueId x = stream(b, forward);
    return scores(b, forward,
                  c_.pools_mean ? mean_of_first_document(b, final_norm(b, x), forward.doc_start)
                                : final_norm(b, first_rows(b, x)));
  }

  [[nodiscard]] std::string_view base_prefix() const override { return "model."; }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    const auto is_in = [&](std::string_view module) { return name.starts_with(module); };
    if (is_in("decoder.")) return !has_masked_head() || (!c_.decoder_bias && name == kDecoderBias);
    if (is_in("classifier.")) return num_labels_ == 0;
    return is_in("head.") && c_.head == Head::kNone;
  }
  [[nodiscard]] std::string_view head_module() const override { return "classifier"; }
  [[nodiscard]] bool is_of_head(std::string_view name) const override {
    return has_masked_head() ? name == kDecoderBias : LanguageModel::is_of_head(name);
  }
  /// Of the other heads too, which have it alike.
  [[nodiscard]] bool is_drawn_where_missing(std::string_view name) const override {
    return name.starts_with("head.");
  }

 private:
  static constexpr const char* kDecoder = "decoder.weight";
  static constexpr const char* kDecoderBias = "decoder.bias";

  [[nodiscard]] int64_t window(int64_t layer) const { return c_.windows[static_cast<size_t>(layer)]; }
  [[nodiscard]] bool any_sees_all() const { return std::ranges::count(c_.windows, 0) > 0; }
  [[nodiscard]] bool any_slides() const { return std::ranges::count(c_.windows, 0) < c_.num_layers; }
  [[nodiscard]] int64_t head_dim() const { return c_.hidden / c_.heads; }
  static std::string layer_name(int64_t i) { return fmt::format("model.layers.{}.", i); }

  // ---- parameters

  void add(const std::string& name, ParameterKind kind, const ir::Shape& shape, Init init,
           double deviation = 0) {
    parameters_.push_back({name, kind, shape, init, deviation, {{name, 0, shape}}});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", ParameterKind::kVector, {c_.hidden}, Init::kOnes);
    if (c_.norm_bias) add(name + ".bias", ParameterKind::kVector, {c_.hidden}, Init::kZeros);
  }
  void add_linear(const std::string& name, int64_t out, int64_t in, bool bias, double deviation) {
    add(name + ".weight", ParameterKind::kLinear, {out, in}, Init::kNormal, deviation);
    if (bias) add(name + ".bias", ParameterKind::kVector, {out}, Init::kZeros);
  }
  /// Of maps into the stream.
  [[nodiscard]] double small_deviation() const {
    return deviation_ / std::sqrt(2.0 * static_cast<double>(c_.num_layers));
  }
  void add_layer(int64_t i) {
    const std::string layer = layer_name(i);
    if (i > 0) add_norm(layer + "attn_norm");
    add_linear(layer + "attn.Wqkv", 3 * c_.hidden, c_.hidden, c_.attention_bias, deviation_);
    add_linear(layer + "attn.Wo", c_.hidden, c_.hidden, c_.attention_bias, small_deviation());
    add_norm(layer + "mlp_norm");
    add_linear(layer + "mlp.Wi", 2 * c_.inner, c_.hidden, c_.mlp_bias, deviation_);
    add_linear(layer + "mlp.Wo", c_.hidden, c_.inner, c_.mlp_bias, small_deviation());
  }
  void add_frequencies(const char* name, const RopeConfig& rope) {
    constants_.push_back({name, ir::Shape{head_dim() / 2}, rope.inverse_frequencies(head_dim())});
  }
  void add_head() {
    if (c_.head == Head::kNone) return;
    add_linear("head.dense", c_.hidden, c_.hidden, c_.head_bias, small_deviation());
    add_norm("head.norm");
    if (has_masked_head()) {
      if (c_.decoder_bias) add(kDecoderBias, ParameterKind::kVector, {c_.vocab_size}, Init::kZeros);
      return;
    }
    const double deviation =
        truncated_deviation(c_.initializer_cutoff) / std::sqrt(static_cast<double>(c_.hidden));
    add_linear("classifier", num_labels_, c_.hidden, true, deviation);
  }

  // ---- the graph

  ValueId norm(Builder& b, ValueId x, const std::string& name) const {
    return c_.norm_bias ? layer_norm(b, *this, x, name, c_.eps)
                        : layer_norm_without_bias(b, *this, x, name, c_.eps);
  }
  static LinearSpec linear_of(const std::string& name, bool bias) {
    return {.weight = name + ".weight", .bias = bias ? name + ".bias" : ""};
  }
  ValueId rope_table(Builder& b, const Forward& forward, const char* frequencies,
                     const RopeConfig& rope) const {
    return ops::rope_table(b, read_constant(b, frequencies), positions(b, forward),
                           b.type(forward.tokens).shape.dim(1), rope.attention_factor);
  }

  ValueId layer(Builder& b, const Forward& forward, ValueId x, int64_t index, ValueId rope) const {
    const std::string name = layer_name(index);
    {
      const auto scope = b.scope("attention");
      const ValueId normed = index > 0 ? norm(b, x, name + "attn_norm") : x;
      const ValueId out = attention(b, *this, forward, attention_of(index, rope), normed);
      x = ops::add(b, x, dropout(b, forward.noise(), out, c_.attention_dropout));
    }
    const auto scope = b.scope("mlp");
    const ValueId normed = norm(b, x, name + "mlp_norm");
    const MlpSpec spec{linear_of(name + "mlp.Wi", c_.mlp_bias), linear_of(name + "mlp.Wo", c_.mlp_bias)};
    return ops::add(
        b, x, gated_mlp(b, *this, spec, normed, c_.inner, c_.activation, forward.noise(), c_.mlp_dropout));
  }

  [[nodiscard]] AttentionSpec attention_of(int64_t index, ValueId rope) const {
    const std::string layer = layer_name(index) + "attn.";
    return {.qkv = linear_of(layer + "Wqkv", c_.attention_bias),
            .out = linear_of(layer + "Wo", c_.attention_bias),
            .heads = c_.heads,
            .kv_heads = c_.heads,
            .head_dim = head_dim(),
            .rope = rope,
            .options = {.scale = 1.0 / std::sqrt(static_cast<double>(head_dim())),
                        .causal = false,
                        .window = window(index),
                        .dropout = c_.attention_dropout},
            .layer = index};
  }

  /// The mean over the first document of each sequence: padding is the document behind it. [B, T, hidden] ->
  /// [B, 1, hidden].
  ValueId mean_of_first_document(Builder& b, ValueId x, ValueId doc_start) const {
    const auto scope = b.scope("pool");
    const ir::Shape shape = b.type(x).shape;
    const int64_t batch = shape.dim(0), tokens = shape.dim(1);
    ValueId counted = ops::fill(b, {batch, 1, tokens}, 1);
    if (doc_start.valid() && tokens > 1) {
      // 1 at the start 0 of the first document, 0 at all others.
      const ValueId first = ops::concat(b, {ops::fill(b, {1, 1}, 1), ops::fill(b, {1, tokens - 1}, 0)});
      counted = ops::embedding(b, ops::reshape(b, first, {tokens, 1}), doc_start);
      counted = ops::reshape(b, counted, {batch, 1, tokens});
    }
    const ValueId count = ops::reduce(b, ops::Reduce::kSum, counted, {2}, /*keep=*/true);
    const ValueId sum = ops::batched_matmul(b, counted, x);
    return ops::pointwise(b, "div(x0,x1)", {sum, count});
  }

  /// What the heads share: dense - activation - norm.
  ValueId head_rows(Builder& b, ValueId rows) const {
    const auto scope = b.scope("head.dense");
    rows = activate(b, linear(b, *this, linear_of("head.dense", c_.head_bias), rows), c_.head_activation);
    return norm(b, rows, "head.norm");
  }
  /// Without labels there is no head, and rows stay as they are.
  ValueId scores(Builder& b, const Forward& forward, ValueId rows) const {
    if (num_labels_ == 0) return rows;
    rows = dropout(b, forward.noise(), head_rows(b, rows), c_.head_dropout);
    const auto scope = b.scope("head.out");
    return linear(b, *this, linear_of("classifier", true), rows);
  }
  ValueId words(Builder& b, ValueId rows) const {
    rows = head_rows(b, rows);
    const auto scope = b.scope("head");
    return linear(b, *this,
                  {.weight = kWords, .bias = c_.decoder_bias ? kDecoderBias : "", .adapted = kDecoder}, rows);
  }

  const ModernBertConfig c_;
  const double deviation_;  ///< of the weights that are drawn
};

Result<std::unique_ptr<Model>> make_modernbert(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(ModernBertConfig c, read_modernbert(config));
  return std::unique_ptr<Model>(std::make_unique<ModernBert>(std::move(c)));
}

constexpr Preset kModernBertPresets[] = {
    {"modernbert-base", "answerdotai/ModernBERT-base", "Apache 2.0", 149'014'272,
     R"({"model_type": "modernbert", "vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152,
      "num_hidden_layers": 22, "num_attention_heads": 12, "hidden_activation": "gelu",
      "max_position_embeddings": 8192, "norm_eps": 1e-05, "norm_bias": false, "pad_token_id": 50283,
      "attention_bias": false, "mlp_bias": false, "global_attn_every_n_layers": 3, "local_attention": 128,
      "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "classifier_pooling": "mean",
      "classifier_bias": false, "decoder_bias": true})"},
    {"modernbert-large", "answerdotai/ModernBERT-large", "Apache 2.0", 394'781'696,
     R"({"model_type": "modernbert", "vocab_size": 50368, "hidden_size": 1024, "intermediate_size": 2624,
      "num_hidden_layers": 28, "num_attention_heads": 16, "hidden_activation": "gelu",
      "max_position_embeddings": 8192, "norm_eps": 1e-05, "norm_bias": false, "pad_token_id": 50283,
      "attention_bias": false, "mlp_bias": false, "global_attn_every_n_layers": 3, "local_attention": 128,
      "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "classifier_pooling": "mean",
      "classifier_bias": false, "decoder_bias": true})"},
};

constexpr Family kModernBertFamily{
    .model_type = "modernbert",
    .class_name = "ModernBert",
    .causal_class = "Model",
    .make = make_modernbert,
    .fields = {.kv_heads = {}, .lists_of_layers = {"layer_types"}},
    .sample = R"({"architectures": ["ModernBertForSequenceClassification"], "model_type": "modernbert",
    "vocab_size": 211, "hidden_size": 60, "intermediate_size": 84, "num_hidden_layers": 3,
    "num_attention_heads": 3, "hidden_activation": "gelu", "max_position_embeddings": 128, "norm_eps": 1e-05,
    "initializer_range": 0.1, "initializer_cutoff_factor": 2.0, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2,
    "local_attention": 14, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0,
    "classifier_pooling": "cls", "num_labels": 5})",
    .presets = kModernBertPresets};

}  // namespace

const Family& modernbert_family() { return kModernBertFamily; }

}  // namespace plimsoll::models
