#include "tasks/sequence_classification.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "models/classifier.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "ops/structure.h"
#include "tasks/labelled_source.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

/// The order of the inputs. Where a model takes no doc_start, types stand in its place.
constexpr size_t kTokensRow = 0, kLastRow = 1, kLabelsRow = 2, kDocStartRow = 3;
size_t types_row(const SequenceRows& rows) { return kDocStartRow + (rows.doc_start ? 1 : 0); }

/// Labelled examples as rows of a batch.
class LabelledSource final : public LabelledExamples {
 public:
  LabelledSource(corpora::LabelledDataset data, bool single, const SequenceRows& rows)
      : LabelledExamples(std::move(data)), single_(single), rows_(rows) {}
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> scratch) const override {
    float label = 0;
    const SequenceRow parts = SequenceRow::of(row, rows_);
    const corpora::LabelledRow example{
        parts.tokens, parts.last, single_ ? std::span(&label, 1) : datasets::row_as<float>(row[kLabelsRow]),
        parts.types};
    PLIMSOLL_ASSIGN(const int64_t tokens, data_.read(index, example, scratch));
    parts.set_length(tokens);
    if (single_) datasets::row_as<int32_t>(row[kLabelsRow])[0] = static_cast<int32_t>(label);
    return datasets::ExampleCounts{tokens, 1};
  }

 private:
  bool single_;
  SequenceRows rows_;
};

class SequenceClassification final : public Task {
 public:
  SequenceClassification(const io::Labels& labels, std::optional<int64_t> pad_token, const TokenSizes& sizes,
                         const SequenceRows& rows)
      : labels_(labels),
        problem_(labels.problem),
        count_(labels.count()),
        pad_token_(pad_token),
        sizes_(sizes),
        rows_(rows) {
    inputs_.push_back(datasets::token_tensor("tokens", 0));
    inputs_.push_back({.name = "last"});
    if (is_single())
      inputs_.push_back({.name = "labels", .padding_bits = datasets::element_bits(ops::kIgnoreTarget)});
    else
      inputs_.push_back({.name = "labels",
                         .dtype = ir::DType::kF32,
                         .shape = {count_},
                         .padding_bits = datasets::element_bits(std::numeric_limits<float>::quiet_NaN())});
    if (rows.doc_start) inputs_.push_back(datasets::token_tensor("doc_start", 0, datasets::Padding::kIndex));
    if (rows.has_types()) inputs_.push_back(datasets::token_tensor("token_types", 0));
  }
  [[nodiscard]] Unit unit() const override { return kTokens; }
  [[nodiscard]] std::string_view loss_unit() const override { return "examples"; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const ir::ValueId scores = scores_of(b, model, inputs, operands);
    const auto scope = b.scope("score");
    const ir::ValueId sum = loss(b, scores, inputs[kLabelsRow], operands);
    return {sum, operands.logits ? flat(b, scores) : ir::ValueId{}};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return flat(b, scores_of(b, model, inputs, {}));
  }
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override { return {batch, count_}; }

  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override {
    PLIMSOLL_ASSIGN(
        corpora::LabelledDataset data,
        corpora::LabelledDataset::open(files.paths, {.sequence_length = options.pack.sequence_length,
                                                     .vocab_size = sizes_.vocab_size,
                                                     .token_types = rows_.has_types(),
                                                     .pad_token = pad_token_,
                                                     .labels = labels_,
                                                     .setting = options.setting}));
    return std::unique_ptr<datasets::ExampleSource>(
        std::make_unique<LabelledSource>(std::move(data), is_single(), rows_));
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
    if (problem_ == io::ProblemType::kRegression) return metrics::regression_bytes(count_, max_examples);
    return is_single() ? metrics::class_metrics_bytes(count_) : metrics::multi_label_bytes(count_);
  }
  [[nodiscard]] std::span<const std::string> class_names() const override { return labels_.names; }
  void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
              datasets::ExampleRow row) const override {
    if (!is_single()) return metrics.add(outputs, datasets::row_as<const float>(row[kLabelsRow]));
    const auto label = static_cast<float>(datasets::row_as<const int32_t>(row[kLabelsRow])[0]);
    metrics.add(outputs, {&label, 1});
  }

  [[nodiscard]] datasets::ExampleCounts drawn_counts() const override { return {sizes_.longest, 1}; }
  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    const auto next = [&] { return (seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
    const std::span<int32_t> tokens = datasets::row_as<int32_t>(row[kTokensRow]);
    for (int32_t& token : tokens)
      token = static_cast<int32_t>(next() % static_cast<uint64_t>(sizes_.vocab_size));
    const SequenceRow parts = SequenceRow::of(row, rows_);
    parts.set_length(static_cast<int64_t>(tokens.size()));
    for (int32_t& type : parts.types)
      type = static_cast<int32_t>(next() % static_cast<uint64_t>(rows_.num_token_types));
    if (is_single())
      datasets::row_as<int32_t>(row[kLabelsRow])[0] =
          static_cast<int32_t>(next() % static_cast<uint64_t>(count_));
    else
      for (float& label : datasets::row_as<float>(row[kLabelsRow])) label = static_cast<float>(next() % 2);
  }

 private:
  [[nodiscard]] bool is_single() const { return problem_ == io::ProblemType::kSingleLabel; }
  /// [batch, 1, labels]
  ir::ValueId scores_of(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                        const LossOperands& operands) const {
    models::Forward forward{
        .tokens = inputs[kTokensRow], .training = operands.training, .random = operands.random};
    if (rows_.doc_start) forward.doc_start = inputs[kDocStartRow];
    if (rows_.has_types()) forward.token_types = inputs[types_row(rows_)];
    return models::language_model(model).pooled_logits(b, forward, inputs[kLastRow]);
  }
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
  const TokenSizes sizes_;
  const SequenceRows rows_;
};

Result<std::unique_ptr<Task>> make_classification(const TaskInputs& inputs) {
  PLIMSOLL_ASSIGN(const auto pad_token, io::read_pad_token(inputs.model_config));
  const models::LanguageModel& model = models::language_model(inputs.model);
  return make_sequence_classification(*inputs.labels, pad_token,
                                      {.vocab_size = model.vocab_size(), .longest = inputs.sequence_length},
                                      rows_of(model));
}

constexpr std::array kClassificationSettings =
    joined(kTokenSettings, std::array<std::string_view, 1>{"classification."});

}  // namespace

SequenceRows rows_of(const models::LanguageModel& model) {
  return {.doc_start = model.is_bidirectional(), .num_token_types = model.num_token_types()};
}

SequenceRow SequenceRow::of(datasets::ExampleRow row, const SequenceRows& rows) {
  SequenceRow parts{.tokens = datasets::row_as<int32_t>(row[kTokensRow]),
                    .last = datasets::row_as<int32_t>(row[kLastRow]).data()};
  if (rows.doc_start) parts.doc_start = datasets::row_as<int32_t>(row[kDocStartRow]);
  if (rows.has_types()) parts.types = datasets::row_as<int32_t>(row[types_row(rows)]);
  return parts;
}

void SequenceRow::set_length(int64_t count) const {
  *last = static_cast<int32_t>(std::max<int64_t>(0, count - 1));
  for (size_t i = 0; i < doc_start.size(); ++i)
    doc_start[i] = static_cast<int64_t>(i) < count ? 0 : static_cast<int32_t>(i);
}

std::unique_ptr<Task> make_sequence_classification(const io::Labels& labels, std::optional<int64_t> pad_token,
                                                   const TokenSizes& sizes, const SequenceRows& rows) {
  return std::make_unique<SequenceClassification>(labels, pad_token, sizes, rows);
}

const TaskDef& sequence_classification() {
  static constexpr TaskDef kDef = {.name = "sequence_classification",
                                   .trains = "classifier of sequences",
                                   .pipeline = "text-classification",
                                   .preparation = Preparation::kLabelled,
                                   .make = make_classification,
                                   .is_made_for = io::is_sequence_classifier,
                                   .adapt = models::as_classifier,
                                   .settings = kClassificationSettings};
  return kDef;
}

}  // namespace plimsoll::tasks
