// Devlin et al. 2018, arXiv:1810.04805; names and layout of the tensors as in transformers' files.
//
//   word ─────┐
//   position ─┼─ + ─ norm ─ layers ─ token 0 ─ head
//   type ─────┘
//   layer:  x ─ attention ─ + x ─ norm ─ MLP ─ + ─ norm
#include "models/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/blocks/attention.h"
#include "models/blocks/dropout.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/linear.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

class TextEncoder final : public LanguageModel {
 public:
  explicit TextEncoder(TextEncoderConfig config)
      : c_(std::move(config)),
        table_of_head_(c_.masked.table + ".weight"),
        words_(embeddings("word_embeddings")) {
    vocab_size_ = c_.vocab_size;
    max_positions_ = c_.position_rows - c_.first_position;
    num_labels_ = c_.num_labels;
    unknown_fields_ = c_.unknown_fields;
    add(embeddings("word_embeddings"), ParameterKind::kTable, {c_.vocab_size, c_.hidden}, Init::kNormal);
    add(embeddings("position_embeddings"), ParameterKind::kTable, {c_.position_rows, c_.hidden},
        Init::kNormal);
    if (c_.token_types > 0)
      add(embeddings("token_type_embeddings"), ParameterKind::kTable, {c_.token_types, c_.hidden},
          Init::kNormal);
    add_norm(c_.prefix + "embeddings.LayerNorm");
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const size_t first = parameters_.size();
      add_layer(layer_name(i));
      put_in_block(first, i);
    }
    if (!c_.head.dense.empty()) add_linear(c_.head.dense, c_.hidden, c_.hidden);
    if (num_labels_ > 0) add_linear(c_.head.out, num_labels_, c_.hidden);
    if (has_masked_head()) add_masked_head();
  }

  [[nodiscard]] bool is_bidirectional() const override { return true; }
  [[nodiscard]] int64_t num_token_types() const override { return c_.token_types; }

  ValueId stream(Builder& b, const Forward& forward) const override {
    ValueId x;
    {
      const auto scope = b.scope("embeddings");
      x = norm(b, embedded(b, forward), c_.prefix + "embeddings.LayerNorm");
      x = dropout(b, forward.noise(), x, c_.hidden_dropout);
    }
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "layer." + std::to_string(i));
      x = layer(b, forward, x, i);
    }
    return x;
  }

  /// The layers end with norms.
  ValueId final_norm(Builder& /*b*/, ValueId stream) const override { return stream; }

  ValueId head(Builder& b, ValueId hidden) const override {
    return has_masked_head() ? words(b, hidden) : scores(b, {}, hidden);
  }
  [[nodiscard]] bool has_masked_head() const override { return !c_.masked.dense.empty(); }
  [[nodiscard]] bool has_span_head() const override { return c_.answers; }
  ValueId span_logits(Builder& b, const Forward& forward) const override {
    return scores(b, forward, stream(b, forward));
  }
  [[nodiscard]] std::optional<TiedHead> tied_head() const override {
    if (!has_masked_head()) return {};
    return TiedHead{table_of_head_, words_};
  }

  /// The head reads the first token, whichever is the last.
  ValueId pooled_logits(Builder& b, const Forward& forward, ValueId /*last*/) const override {
    return scores(b, forward, first_rows(b, stream(b, forward)));
  }

  [[nodiscard]] std::string_view base_prefix() const override { return c_.prefix; }
  /// Files that were converted from TensorFlow call the norms' weights gamma and beta.
  [[nodiscard]] std::string other_name(std::string_view name) const override {
    for (const auto& [ours, theirs] :
         {std::pair("LayerNorm.weight", "LayerNorm.gamma"), std::pair("LayerNorm.bias", "LayerNorm.beta")})
      if (name.ends_with(ours))
        return std::string(name.substr(0, name.size() - std::string_view(ours).size())) + theirs;
    return {};
  }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return std::ranges::any_of(c_.ignored, [&](const auto& start) { return name.starts_with(start); }) ||
           (num_labels_ == 0 && is_of_head(name));
  }
  [[nodiscard]] std::string_view head_module() const override {
    return c_.answers ? "qa_outputs" : "classifier";
  }
  [[nodiscard]] bool is_of_head(std::string_view name) const override {
    if (has_masked_head())
      return is_of(c_.masked.dense, name) || is_of(c_.masked.norm, name) || name == c_.masked.bias;
    return LanguageModel::is_of_head(name) || (!is_dense_of_base() && is_of(c_.head.dense, name));
  }
  [[nodiscard]] bool is_drawn_where_missing(std::string_view name) const override {
    return is_dense_of_base() && is_of(c_.head.dense, name);
  }

 private:
  [[nodiscard]] std::string embeddings(std::string_view table) const {
    return fmt::format("{}embeddings.{}.weight", c_.prefix, table);
  }
  [[nodiscard]] std::string layer_name(int64_t i) const {
    return fmt::format("{}{}.{}.", c_.prefix, c_.layers, i);
  }
  static std::string module(const std::string& layer, std::string_view name) {
    return layer + std::string(name);
  }
  /// BERT's pooler, which its bare model has as well.
  [[nodiscard]] bool is_dense_of_base() const { return c_.head.dense.starts_with(c_.prefix); }
  /// A tensor of that module.
  static bool is_of(std::string_view module, std::string_view name) {
    return !module.empty() && name.starts_with(module) && name.substr(module.size()).starts_with('.');
  }

  // ---- parameters

  void add(const std::string& name, ParameterKind kind, const ir::Shape& shape, Init init) {
    parameters_.push_back({name, kind, shape, init, c_.initializer_range, {{name, 0, shape}}});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", ParameterKind::kVector, {c_.hidden}, Init::kOnes);
    add(name + ".bias", ParameterKind::kVector, {c_.hidden}, Init::kZeros);
  }
  void add_linear(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", ParameterKind::kLinear, {out, in}, Init::kNormal);
    add(name + ".bias", ParameterKind::kVector, {out}, Init::kZeros);
  }
  /// q, k and v, which one product computes.
  void add_qkv(const std::string& layer) {
    Parameter weight{qkv(layer) + ".weight", ParameterKind::kLinear, {3 * c_.hidden, c_.hidden},
                     Init::kNormal,          c_.initializer_range,   {}};
    Parameter bias{qkv(layer) + ".bias", ParameterKind::kVector, {3 * c_.hidden}, Init::kZeros, 0.0, {}};
    int64_t row = 0;
    for (const std::string_view part : {c_.names.query, c_.names.key, c_.names.value}) {
      weight.views.push_back({module(layer, part) + ".weight", row, {c_.hidden, c_.hidden}});
      bias.views.push_back({module(layer, part) + ".bias", row, {c_.hidden}});
      row += c_.hidden;
    }
    parameters_.push_back(std::move(weight));
    parameters_.push_back(std::move(bias));
  }
  static std::string qkv(const std::string& layer) { return layer + "attention.qkv"; }

  void add_layer(const std::string& layer) {
    add_qkv(layer);
    add_linear(module(layer, c_.names.out), c_.hidden, c_.hidden);
    add_norm(module(layer, c_.names.attention_norm));
    add_linear(module(layer, c_.names.up), c_.inner, c_.hidden);
    add_linear(module(layer, c_.names.down), c_.hidden, c_.inner);
    add_norm(module(layer, c_.names.output_norm));
  }
  void add_masked_head() {
    add_linear(c_.masked.dense, c_.hidden, c_.hidden);
    add_norm(c_.masked.norm);
    add(c_.masked.bias, ParameterKind::kVector, {c_.vocab_size}, Init::kZeros);
  }

  // ---- the graph

  ValueId norm(Builder& b, ValueId x, const std::string& name) const {
    return layer_norm(b, *this, x, name, c_.eps);
  }
  static LinearSpec with_bias(const std::string& name) {
    return {.weight = name + ".weight", .bias = name + ".bias"};
  }
  /// The sum of the embeddings of each token, in transformers' order.
  ValueId embedded(Builder& b, const Forward& forward) const {
    const ir::Shape shape = b.type(forward.tokens).shape;
    ValueId x = embed(b, *this, embeddings("word_embeddings"), forward.tokens, c_.pad_token);
    if (c_.token_types > 0)
      x = ops::add(b, x, embed(b, *this, embeddings("token_type_embeddings"), types(b, forward, shape)));
    const ValueId places =
        forward.doc_start.valid()
            ? ops::document_positions(b, forward.doc_start, c_.first_position)
            : ops::positions(b, shape.dim(0), shape.dim(1), /*start=*/{}, c_.first_position);
    return ops::add(b, x, embed(b, *this, embeddings("position_embeddings"), places));
  }
  /// Zeros where the batch has no types: each index less itself.
  static ValueId types(Builder& b, const Forward& forward, const ir::Shape& shape) {
    if (forward.token_types.valid()) return forward.token_types;
    return ops::document_positions(b, ops::positions(b, shape.dim(0), shape.dim(1)));
  }

  ValueId layer(Builder& b, const Forward& forward, ValueId x, int64_t index) const {
    const std::string name = layer_name(index);
    {
      const auto scope = b.scope("attention");
      ValueId out = attention(b, *this, forward, attention_of(index), x);
      out = dropout(b, forward.noise(), out, c_.attention_output_dropout);
      x = norm(b, ops::add(b, out, x), module(name, c_.names.attention_norm));
    }
    const auto scope = b.scope("mlp");
    const MlpSpec spec{with_bias(module(name, c_.names.up)), with_bias(module(name, c_.names.down))};
    ValueId out = mlp(b, *this, spec, x, c_.activation, forward.noise());
    out = dropout(b, forward.noise(), out, c_.hidden_dropout);
    return norm(b, ops::add(b, out, x), module(name, c_.names.output_norm));
  }

  [[nodiscard]] AttentionSpec attention_of(int64_t index) const {
    const std::string layer = layer_name(index);
    const int64_t head_dim = c_.hidden / c_.heads;
    return {.qkv = with_bias(qkv(layer)),
            .out = with_bias(module(layer, c_.names.out)),
            .heads = c_.heads,
            .kv_heads = c_.heads,
            .head_dim = head_dim,
            .options = {.scale = 1.0 / std::sqrt(static_cast<double>(head_dim)),
                        .causal = false,
                        .dropout = c_.attention_dropout},
            .layer = index};
  }

  /// The head on rows [..., hidden]; without labels there is none, and they stay as they are.
  ValueId scores(Builder& b, const Forward& forward, ValueId rows) const {
    if (num_labels_ == 0) return rows;
    if (!c_.head.dense.empty()) {
      const auto scope = b.scope("head.dense");
      if (c_.head.drops_features) rows = dropout(b, forward.noise(), rows, c_.head.dropout);
      rows = linear(b, *this, with_bias(c_.head.dense), rows, forward.noise());
      rows = activate(b, rows, c_.head.activation);
    }
    const auto scope = b.scope("head.out");
    rows = dropout(b, forward.noise(), rows, c_.head.dropout);
    return linear(b, *this, with_bias(c_.head.out), rows);
  }

  /// The masked language model's head on rows [..., hidden] -> [..., vocab].
  ValueId words(Builder& b, ValueId rows) const {
    const auto scope = b.scope("head");
    rows = activate(b, linear(b, *this, with_bias(c_.masked.dense), rows), c_.masked.activation);
    rows = norm(b, rows, c_.masked.norm);
    return linear(b, *this, {.weight = words_, .bias = c_.masked.bias, .adapted = table_of_head_}, rows);
  }

  const TextEncoderConfig c_;
  const std::string table_of_head_, words_;  ///< names that TiedHead refers to
};

}  // namespace

std::unique_ptr<LanguageModel> make_text_encoder(TextEncoderConfig config) {
  return std::make_unique<TextEncoder>(std::move(config));
}

}  // namespace plimsoll::models
