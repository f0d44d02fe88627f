#include "models/language_model.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "models/linear.h"
#include "ops/ops.h"

namespace plimsoll::models {

ir::ValueId LanguageModel::pooled_logits(ir::Builder& b, const Forward& forward, ir::ValueId last) const {
  ir::ValueId rows = stream(b, forward);
  {
    const auto scope = b.scope("pool");
    rows = ops::gather_rows(b, rows, last);
  }
  return head(b, final_norm(b, rows));
}

ir::ValueId LanguageModel::masked_logits(ir::Builder& b, const Forward& forward, ir::ValueId rows) const {
  ir::ValueId chosen = stream(b, forward);
  {
    const auto scope = b.scope("masked");
    chosen = ops::gather_rows(b, chosen, rows);
  }
  return head(b, final_norm(b, chosen));
}

ir::ValueId LanguageModel::span_logits(ir::Builder& /*b*/, const Forward& /*forward*/) const {
  PLIMSOLL_FAIL("the model has no head for spans");
}

ir::ValueId LanguageModel::first_rows(ir::Builder& b, ir::ValueId x) {
  const auto scope = b.scope("pool");
  const int64_t batch = b.type(x).shape.dim(0);
  return ops::gather_rows(b, x, ops::reshape(b, ops::positions(b, batch, 1), {batch}));
}

ir::ValueId LanguageModel::score(ir::Builder& b, ir::ValueId rows) const {
  const auto scope = b.scope("score");
  return linear(b, *this, {.weight = kScore}, rows);
}

const LanguageModel* as_language_model(const Model& model) {
  return dynamic_cast<const LanguageModel*>(&model);
}

const LanguageModel& language_model(const Model& model) {
  const LanguageModel* language = as_language_model(model);
  PLIMSOLL_CHECK(language != nullptr, "the model is no language model");
  return *language;
}

Status check_is_causal(const LanguageModel& model, const io::ConfigJson& config) {
  if (!model.is_bidirectional()) return Ok{};
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} is an encoder and predicts no next token", type),
               config.source(),
               "train it with task=masked_lm, or with task=sequence_classification and ask it with plimsoll "
               "predict, or name a causal language model"};
}

Result<std::unique_ptr<LanguageModel>> make_language_model(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(std::unique_ptr<Model> model, make_model(config));
  auto* language = dynamic_cast<LanguageModel*>(model.get());
  if (language == nullptr) return config.error("model_type", "a language model");
  (void)model.release();
  return std::unique_ptr<LanguageModel>(language);
}

}  // namespace plimsoll::models
