// Causal language modelling: each token predicts the next.
#include "data/packed_dataset.h"
#include "ops/ops.h"
#include "tasks/task.h"

namespace plimsoll::tasks {
namespace {

constexpr size_t kTokens = 0, kTargets = 1, kDocStart = 2;

class CausalLm final : public Task {
 public:
  explicit CausalLm(bool documents) {
    inputs_.push_back({.name = "tokens", .row = token_row(0)});
    inputs_.push_back({.name = "targets", .row = token_row(kNoTarget)});
    // Padding is documents of one token, so that attention spends one score on it.
    if (documents) inputs_.push_back({.name = "doc_start", .row = token_row(0, RowPadding::kIndex)});
  }
  [[nodiscard]] std::string_view name() const override { return "causal_lm"; }
  [[nodiscard]] std::string_view unit() const override { return "targets"; }
  [[nodiscard]] bool has_perplexity() const override { return true; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const ir::ValueId values = model.logits(b, forward_of(inputs, operands.random));
    const auto scope = b.scope("lm_head");
    const auto loss = ops::cross_entropy(b, values, inputs[kTargets], operands.grad_scale, operands.acc);
    return {loss.loss, values};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return model.logits(b, forward_of(inputs, {}));
  }
  [[nodiscard]] ir::Shape logits_shape(const models::Model& model, int64_t batch,
                                       int64_t length) const override {
    return {batch, length, model.vocab_size()};
  }

  void draw(uint64_t seed, int64_t vocab_size, SequenceRow row) const override {
    const std::span<int32_t> tokens = row_as<int32_t>(row[kTokens]), targets = row_as<int32_t>(row[kTargets]);
    for (int32_t& token : tokens) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      token = static_cast<int32_t>((seed >> 33) % static_cast<uint64_t>(vocab_size));
    }
    for (size_t i = 0; i < targets.size(); ++i)
      targets[i] = i + 1 < tokens.size() ? tokens[i + 1] : kNoTarget;
    if (row.size() > kDocStart)
      for (int32_t& start : row_as<int32_t>(row[kDocStart])) start = 0;
  }

 private:
  static models::Forward forward_of(std::span<const ir::ValueId> inputs, ir::ValueId random) {
    return {.tokens = inputs[kTokens],
            .doc_start = inputs.size() > kDocStart ? inputs[kDocStart] : ir::ValueId{},
            .random = random};
  }
};

}  // namespace

std::unique_ptr<Task> make_causal_lm(bool documents) { return std::make_unique<CausalLm>(documents); }

}  // namespace plimsoll::tasks
