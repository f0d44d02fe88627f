#include "models/language_model.h"

#include "base/check.h"
#include "models/linear.h"

namespace plimsoll::models {

ir::ValueId LanguageModel::pooled_logits(ir::Builder& b, const Forward& forward, ir::ValueId last) const {
  ir::ValueId rows = stream(b, forward);
  {
    const auto scope = b.scope("pool");
    rows = ops::gather_rows(b, rows, last);
  }
  return head(b, final_norm(b, rows));
}

ir::ValueId LanguageModel::score(ir::Builder& b, ir::ValueId rows) const {
  const auto scope = b.scope("score");
  return linear(b, *this, {.weight = std::string(kScore)}, rows);
}

ir::ValueId LanguageModel::positions(ir::Builder& b, const Forward& forward) {
  if (forward.doc_start.valid()) return ops::document_positions(b, forward.doc_start);
  if (!forward.start.valid()) return {};
  const ir::Shape shape = b.type(forward.tokens).shape;
  return ops::positions(b, shape.dim(0), shape.dim(1), forward.start);
}

ir::ValueId LanguageModel::attend(ir::Builder& b, const Forward& forward, ir::ValueId q, ir::ValueId k,
                                  ir::ValueId v, const ops::AttentionOptions& options, int64_t layer) {
  if (forward.cache_tokens == 0) {
    ops::AttentionOptions keyed = options;
    keyed.key = ops::random_key("layers." + std::to_string(layer), "attention");
    return ops::attention(b, q, k, v, forward.doc_start, keyed, forward.noise()).out;
  }
  const auto through_cache = [&](const char* kind, ir::ValueId x) {
    ir::TensorType type = b.type(x);
    type.shape.set_dim(1, forward.cache_tokens);
    type.dtype = forward.cache_dtype;
    const std::string name = "cache." + std::string(kind) + "." + std::to_string(layer);
    const ir::ValueId updated =
        ops::cache_update(b, b.state({name, type, ir::StateClass::kCache}), x, forward.start);
    b.assign(name, updated);
    return updated;
  };
  const ir::ValueId keys = through_cache("k", k), values = through_cache("v", v);
  return ops::attention_cached(b, q, keys, values, forward.start, options);
}

const LanguageModel* as_language_model(const Model& model) {
  return dynamic_cast<const LanguageModel*>(&model);
}

const LanguageModel& language_model(const Model& model) {
  const LanguageModel* language = as_language_model(model);
  PLIMSOLL_CHECK(language != nullptr, "the model is no language model");
  return *language;
}

Result<std::unique_ptr<LanguageModel>> make_language_model(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(std::unique_ptr<Model> model, make_model(config));
  auto* language = dynamic_cast<LanguageModel*>(model.get());
  if (language == nullptr) return config.error("model_type", "a language model");
  (void)model.release();
  return std::unique_ptr<LanguageModel>(language);
}

}  // namespace plimsoll::models
