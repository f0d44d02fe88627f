#include "models/classifier.h"

#include <string>
#include <string_view>
#include <utility>

namespace plimsoll::models {
namespace {

/// How transformers spells a family in the names of its classes.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"llama", "Llama"}, {"mistral", "Mistral"}, {"qwen2", "Qwen2"},
    {"qwen3", "Qwen3"}, {"smollm3", "SmolLM3"}, {"gpt2", "GPT2"}};

}  // namespace

Result<ConfigJson> as_classifier(const ConfigJson& config, const Labels& labels) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  std::string known;
  for (const auto& [family, spelling] : kSpellings) {
    known += (known.empty() ? "" : ", ") + std::string(family);
    if (family != type) continue;
    ConfigJson classifier(config.fields(), config.source());
    set_labels(classifier, std::string(spelling) + "ForSequenceClassification", labels);
    return classifier;
  }
  return config.error("model_type", "a family with a classifier: " + known);
}

ConfigJson with_class(const ConfigJson& config) {
  ConfigJson named(config.fields(), config.source());
  const auto type = config.model_type();
  if (!type) return named;
  if (!config.has("model_type")) named.set("model_type", Tree::of(*type));
  const Tree* given = config.fields().find("architectures");
  if (given != nullptr && !given->items.empty()) return named;
  for (const auto& [family, spelling] : kSpellings)
    if (family == *type) {
      const std::string head = family == "gpt2" ? "LMHeadModel" : "ForCausalLM";
      named.set("architectures", Tree::list({Tree::of(std::string(spelling) + head)}));
    }
  return named;
}

}  // namespace plimsoll::models
