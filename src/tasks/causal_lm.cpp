// Causal language modelling: each token predicts the next.
#include "datasets/training_data.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "tasks/task.h"

namespace plimsoll::tasks {
namespace {

class CausalLm final : public Task {
 public:
  explicit CausalLm(bool documents) {
    const datasets::BatchLayout rows = datasets::causal_layout(documents);
    const char* const names[] = {"tokens", "targets", "doc_start"};
    for (size_t i = 0; i < rows.size(); ++i) inputs_.push_back({.name = names[i], .row = rows[i]});
  }
  [[nodiscard]] std::string_view name() const override { return "causal_lm"; }
  [[nodiscard]] std::string_view unit() const override { return "targets"; }
  [[nodiscard]] bool has_perplexity() const override { return true; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const ir::ValueId values = models::language_model(model).logits(b, forward_of(inputs, operands));
    const auto scope = b.scope("lm_head");
    const auto loss =
        ops::cross_entropy(b, values, inputs[datasets::kTargetsRow], operands.grad_scale, operands.acc);
    return {loss.loss, operands.logits ? values : ir::ValueId{}};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return models::language_model(model).logits(b, forward_of(inputs, {}));
  }
  [[nodiscard]] ir::Shape logits_shape(const models::Model& model, int64_t batch,
                                       int64_t length) const override {
    return {batch, length, models::language_model(model).vocab_size()};
  }

  Result<std::unique_ptr<datasets::SequenceSource>> open_source(
      const datasets::DataFiles& files, const datasets::TrainingDataOptions& options) const override {
    return datasets::open_causal_source(files, options);
  }

  /// The last token predicts nothing.
  [[nodiscard]] datasets::SequenceCounts drawn_counts(int64_t length) const override {
    return {length, length - 1};
  }
  void draw(uint64_t seed, int64_t vocab_size, datasets::SequenceRow row) const override {
    const std::span<int32_t> tokens = datasets::row_as<int32_t>(row[datasets::kTokensRow]),
                             targets = datasets::row_as<int32_t>(row[datasets::kTargetsRow]);
    for (int32_t& token : tokens) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      token = static_cast<int32_t>((seed >> 33) % static_cast<uint64_t>(vocab_size));
    }
    for (size_t i = 0; i < targets.size(); ++i)
      targets[i] = i + 1 < tokens.size() ? tokens[i + 1] : datasets::kNoTarget;
    if (row.size() > datasets::kDocStartRow)
      for (int32_t& start : datasets::row_as<int32_t>(row[datasets::kDocStartRow])) start = 0;
  }

 private:
  static models::Forward forward_of(std::span<const ir::ValueId> inputs, const LossOperands& operands) {
    return {
        .tokens = inputs[datasets::kTokensRow],
        .doc_start = inputs.size() > datasets::kDocStartRow ? inputs[datasets::kDocStartRow] : ir::ValueId{},
        .training = operands.training,
        .random = operands.random};
  }
};

}  // namespace

std::unique_ptr<Task> make_causal_lm(bool documents) { return std::make_unique<CausalLm>(documents); }

}  // namespace plimsoll::tasks
