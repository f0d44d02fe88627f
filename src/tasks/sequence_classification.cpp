#include "tasks/sequence_classification.h"

#include <limits>

#include "ops/ops.h"

namespace plimsoll::tasks {
namespace {

constexpr size_t kTokens = 0, kLast = 1, kLabels = 2;

class SequenceClassification final : public Task {
 public:
  explicit SequenceClassification(const Labels& labels) : problem_(labels.problem), count_(labels.count()) {
    inputs_.push_back({.name = "tokens", .row = token_row(0)});
    inputs_.push_back({.name = "last", .row = int_row(1, 0)});
    if (is_single())
      inputs_.push_back({.name = "labels", .row = int_row(1, ops::kIgnoreTarget)});
    else
      inputs_.push_back({.name = "labels",
                         .dtype = ir::DType::kF32,
                         .row = float_row(count_, std::numeric_limits<float>::quiet_NaN()),
                         .has_columns = true});
  }
  [[nodiscard]] std::string_view name() const override { return "sequence_classification"; }
  [[nodiscard]] std::string_view unit() const override { return "examples"; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const models::Forward forward{.tokens = inputs[kTokens], .random = operands.random};
    const ir::ValueId scores = model.pooled_logits(b, forward, inputs[kLast]);
    const auto scope = b.scope("score");
    return {loss(b, scores, inputs[kLabels], operands), flat(b, scores)};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return flat(b, model.pooled_logits(b, {.tokens = inputs[kTokens]}, inputs[kLast]));
  }
  [[nodiscard]] ir::Shape logits_shape(const models::Model& /*model*/, int64_t batch,
                                       int64_t /*length*/) const override {
    return {batch, count_};
  }

  [[nodiscard]] bool has_metrics() const override { return true; }
  [[nodiscard]] std::unique_ptr<metrics::Metrics> make_metrics(int64_t max_examples) const override {
    switch (problem_) {
      case ProblemType::kSingleLabel:
        return metrics::single_label(count_);
      case ProblemType::kMultiLabel:
        return metrics::multi_label(count_);
      case ProblemType::kRegression:
        break;
    }
    return metrics::regression(count_, max_examples);
  }
  [[nodiscard]] int64_t metrics_bytes(int64_t max_examples) const override {
    return problem_ == ProblemType::kRegression ? metrics::regression_bytes(count_, max_examples)
                                                : metrics::class_metrics_bytes(count_);
  }
  void add_to(metrics::Metrics& metrics, std::span<const float> outputs, SequenceRow row) const override {
    if (!is_single()) return metrics.add(outputs, row_as<const float>(row[kLabels]));
    const auto label = static_cast<float>(row_as<const int32_t>(row[kLabels])[0]);
    metrics.add(outputs, {&label, 1});
  }

  void draw(uint64_t seed, int64_t vocab_size, SequenceRow row) const override {
    const auto next = [&] { return (seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
    const std::span<int32_t> tokens = row_as<int32_t>(row[kTokens]);
    for (int32_t& token : tokens) token = static_cast<int32_t>(next() % static_cast<uint64_t>(vocab_size));
    row_as<int32_t>(row[kLast])[0] = static_cast<int32_t>(tokens.size()) - 1;
    if (is_single())
      row_as<int32_t>(row[kLabels])[0] = static_cast<int32_t>(next() % static_cast<uint64_t>(count_));
    else
      for (float& label : row_as<float>(row[kLabels])) label = static_cast<float>(next() % 2);
  }

 private:
  [[nodiscard]] bool is_single() const { return problem_ == ProblemType::kSingleLabel; }
  /// [batch, 1, labels] without the axis of the one row.
  static ir::ValueId flat(ir::Builder& b, ir::ValueId scores) {
    const ir::Shape shape = b.type(scores).shape;
    return ops::reshape(b, scores, {shape.dim(0), shape.dim(2)});
  }

  [[nodiscard]] ir::ValueId loss(ir::Builder& b, ir::ValueId scores, ir::ValueId labels,
                                 const LossOperands& operands) const {
    const int64_t batch = b.type(scores).shape.dim(0);
    if (is_single())
      return ops::cross_entropy(b, scores, ops::reshape(b, labels, {batch, 1}), operands.grad_scale,
                                operands.acc)
          .loss;
    const ir::ValueId rows = ops::reshape(b, labels, {batch, 1, count_});
    return problem_ == ProblemType::kMultiLabel
               ? ops::bce_with_logits(b, scores, rows, operands.grad_scale, operands.acc)
               : ops::squared_error(b, scores, rows, operands.grad_scale, operands.acc);
  }

  ProblemType problem_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<Task> make_sequence_classification(const Labels& labels) {
  return std::make_unique<SequenceClassification>(labels);
}

}  // namespace plimsoll::tasks
