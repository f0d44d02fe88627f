#include "tasks/sequence_classification.h"

#include <limits>
#include <utility>

#include "corpora/labelled/labelled_dataset.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "ops/structure.h"

namespace plimsoll::tasks {
namespace {

constexpr size_t kTokens = 0, kLast = 1, kLabels = 2;

/// Labelled examples as rows of a batch.
class LabelledSource final : public datasets::SequenceSource {
 public:
  LabelledSource(corpora::LabelledDataset data, bool single) : data_(std::move(data)), single_(single) {}
  [[nodiscard]] int64_t num_sequences() const override { return data_.size(); }
  [[nodiscard]] int64_t num_tokens() const override { return data_.num_tokens(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return data_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const override {
    return data_.length(index, scratch);
  }
  Result<datasets::SequenceCounts> read(int64_t index, datasets::SequenceRow row,
                                        std::span<std::byte> scratch) const override {
    float label = 0;
    const corpora::LabelledRow example{
        datasets::row_as<int32_t>(row[kTokens]), datasets::row_as<int32_t>(row[kLast]).data(),
        single_ ? std::span(&label, 1) : datasets::row_as<float>(row[kLabels])};
    PLIMSOLL_ASSIGN(const int64_t tokens, data_.read(index, example, scratch));
    if (single_) datasets::row_as<int32_t>(row[kLabels])[0] = static_cast<int32_t>(label);
    return datasets::SequenceCounts{tokens, 1};
  }
  Status keep_within(int64_t& room) override { return data_.keep_within(room); }
  Result<uint64_t> fingerprint(std::span<std::byte> /*scratch*/) const override {
    return data_.fingerprint();
  }

 private:
  corpora::LabelledDataset data_;
  bool single_;
};

class SequenceClassification final : public Task {
 public:
  SequenceClassification(const io::Labels& labels, std::optional<int64_t> pad_token)
      : labels_(labels), problem_(labels.problem), count_(labels.count()), pad_token_(pad_token) {
    inputs_.push_back({.name = "tokens", .row = datasets::token_row(0)});
    inputs_.push_back({.name = "last", .row = datasets::int_row(1, 0)});
    if (is_single())
      inputs_.push_back({.name = "labels", .row = datasets::int_row(1, ops::kIgnoreTarget)});
    else
      inputs_.push_back({.name = "labels",
                         .dtype = ir::DType::kF32,
                         .row = datasets::float_row(count_, std::numeric_limits<float>::quiet_NaN()),
                         .has_columns = true});
  }
  [[nodiscard]] std::string_view name() const override { return "sequence_classification"; }
  [[nodiscard]] std::string_view unit() const override { return "examples"; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const models::Forward forward{
        .tokens = inputs[kTokens], .training = operands.training, .random = operands.random};
    const ir::ValueId scores = models::language_model(model).pooled_logits(b, forward, inputs[kLast]);
    const auto scope = b.scope("score");
    const ir::ValueId sum = loss(b, scores, inputs[kLabels], operands);
    return {sum, operands.logits ? flat(b, scores) : ir::ValueId{}};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return flat(b,
                models::language_model(model).pooled_logits(b, {.tokens = inputs[kTokens]}, inputs[kLast]));
  }
  [[nodiscard]] ir::Shape logits_shape(const models::Model& /*model*/, int64_t batch,
                                       int64_t /*length*/) const override {
    return {batch, count_};
  }

  Result<std::unique_ptr<datasets::SequenceSource>> open_source(
      const datasets::DataFiles& files, const datasets::TrainingDataOptions& options) const override {
    PLIMSOLL_ASSIGN(
        corpora::LabelledDataset data,
        corpora::LabelledDataset::open(files.paths, {.sequence_length = options.pack.sequence_length,
                                                     .vocab_size = options.vocab_size,
                                                     .pad_token = pad_token_,
                                                     .labels = labels_,
                                                     .setting = options.setting}));
    return std::unique_ptr<datasets::SequenceSource>(
        std::make_unique<LabelledSource>(std::move(data), is_single()));
  }

  [[nodiscard]] bool has_metrics() const override { return true; }
  [[nodiscard]] std::unique_ptr<metrics::Metrics> make_metrics(int64_t max_examples) const override {
    switch (problem_) {
      case io::ProblemType::kSingleLabel:
        return metrics::single_label(count_);
      case io::ProblemType::kMultiLabel:
        return metrics::multi_label(count_);
      case io::ProblemType::kRegression:
        break;
    }
    return metrics::regression(count_, max_examples);
  }
  [[nodiscard]] int64_t metrics_bytes(int64_t max_examples) const override {
    return problem_ == io::ProblemType::kRegression ? metrics::regression_bytes(count_, max_examples)
                                                    : metrics::class_metrics_bytes(count_);
  }
  void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
              datasets::SequenceRow row) const override {
    if (!is_single()) return metrics.add(outputs, datasets::row_as<const float>(row[kLabels]));
    const auto label = static_cast<float>(datasets::row_as<const int32_t>(row[kLabels])[0]);
    metrics.add(outputs, {&label, 1});
  }

  [[nodiscard]] datasets::SequenceCounts drawn_counts(int64_t length) const override { return {length, 1}; }
  void draw(uint64_t seed, int64_t vocab_size, datasets::SequenceRow row) const override {
    const auto next = [&] { return (seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
    const std::span<int32_t> tokens = datasets::row_as<int32_t>(row[kTokens]);
    for (int32_t& token : tokens) token = static_cast<int32_t>(next() % static_cast<uint64_t>(vocab_size));
    datasets::row_as<int32_t>(row[kLast])[0] = static_cast<int32_t>(tokens.size()) - 1;
    if (is_single())
      datasets::row_as<int32_t>(row[kLabels])[0] =
          static_cast<int32_t>(next() % static_cast<uint64_t>(count_));
    else
      for (float& label : datasets::row_as<float>(row[kLabels])) label = static_cast<float>(next() % 2);
  }

 private:
  [[nodiscard]] bool is_single() const { return problem_ == io::ProblemType::kSingleLabel; }
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
    return problem_ == io::ProblemType::kMultiLabel
               ? ops::bce_with_logits(b, scores, rows, operands.grad_scale, operands.acc)
               : ops::squared_error(b, scores, rows, operands.grad_scale, operands.acc);
  }

  const io::Labels labels_;
  const io::ProblemType problem_;
  const int64_t count_;
  const std::optional<int64_t> pad_token_;
};

}  // namespace

std::unique_ptr<Task> make_sequence_classification(const io::Labels& labels,
                                                   std::optional<int64_t> pad_token) {
  return std::make_unique<SequenceClassification>(labels, pad_token);
}

}  // namespace plimsoll::tasks
