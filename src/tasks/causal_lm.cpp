// Causal language modelling: each token predicts the next.
#include "datasets/causal_source.h"
#include "models/classifier.h"
#include "models/language_model.h"
#include "ops/loss.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

class CausalLm final : public Task {
 public:
  CausalLm(bool documents, const TokenSizes& sizes) : sizes_(sizes) {
    inputs_ = datasets::causal_tensors(documents);
  }
  [[nodiscard]] Unit unit() const override { return kTokens; }
  [[nodiscard]] std::string_view loss_unit() const override { return "loss tokens"; }
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
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override {
    return {batch, sizes_.longest, sizes_.vocab_size};
  }

  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override {
    datasets::SourceOptions own = options;
    own.vocab_size = sizes_.vocab_size;
    return datasets::open_causal_source(files, own);
  }

  /// The last token predicts nothing.
  [[nodiscard]] datasets::ExampleCounts drawn_counts() const override {
    return {sizes_.longest, sizes_.longest - 1};
  }
  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    const std::span<int32_t> tokens = datasets::row_as<int32_t>(row[datasets::kTokensRow]),
                             targets = datasets::row_as<int32_t>(row[datasets::kTargetsRow]);
    for (int32_t& token : tokens) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      token = static_cast<int32_t>((seed >> 33) % static_cast<uint64_t>(sizes_.vocab_size));
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

  const TokenSizes sizes_;
};

Result<std::unique_ptr<Task>> make_causal(const TaskInputs& inputs) {
  return make_causal_lm(
      inputs.packs_documents,
      {.vocab_size = models::language_model(inputs.model).vocab_size(), .longest = inputs.sequence_length});
}

Status check_causal(const io::ConfigJson& model) {
  if (models::is_image_model(model))
    return Error{ErrorCode::kInvalidArgument, "task is causal_lm, and the model reads images", model.source(),
                 "set task=image_classification, or name a causal language model"};
  if (models::is_encoder(model))
    return Error{ErrorCode::kInvalidArgument, "task is causal_lm, and the model is an encoder of text",
                 model.source(),
                 "set task=masked_lm or task=sequence_classification, or name a causal language model"};
  if (!io::is_sequence_classifier(model)) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "task is causal_lm, and the model has the head of a classifier",
               model.source(), "set task=sequence_classification, or name a causal language model"};
}

constexpr std::array kCausalSettings = joined(
    kTokenSettings, std::array<std::string_view, 7>{"data.long_documents", "data.packing_window",
                                                    "data.chat_template", "data.template_date", "data.loss",
                                                    "data.append_eos", "data.add_special_tokens"});

}  // namespace

std::unique_ptr<Task> make_causal_lm(bool documents, const TokenSizes& sizes) {
  return std::make_unique<CausalLm>(documents, sizes);
}

const TaskDef& causal_lm() {
  static constexpr TaskDef kDef = {.name = "causal_lm",
                                   .trains = "language model",
                                   .pipeline = "text-generation",
                                   .preparation = Preparation::kPack,
                                   .make = make_causal,
                                   .check = check_causal,
                                   .settings = kCausalSettings};
  return kDef;
}

}  // namespace plimsoll::tasks
