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

Result<io::ConfigJson> as_classifier(const io::ConfigJson& config, const io::Labels& labels) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  std::string known;
  for (const auto& [family, spelling] : kSpellings) {
    known += (known.empty() ? "" : ", ") + std::string(family);
    if (family != type) continue;
    io::ConfigJson classifier(config.fields(), config.source());
    io::set_labels(classifier, std::string(spelling) + "ForSequenceClassification", labels);
    return classifier;
  }
  return config.error("model_type", "a family with a classifier: " + known);
}

io::ConfigJson with_class(const io::ConfigJson& config) {
  io::ConfigJson named(config.fields(), config.source());
  const auto type = config.model_type();
  if (!type) return named;
  if (!config.has("model_type")) named.set("model_type", io::Tree::of(*type));
  const io::Tree* given = config.fields().find("architectures");
  if (given != nullptr && !given->items.empty()) return named;
  for (const auto& [family, spelling] : kSpellings)
    if (family == *type) {
      const std::string head = family == "gpt2" ? "LMHeadModel" : "ForCausalLM";
      named.set("architectures", io::Tree::list({io::Tree::of(std::string(spelling) + head)}));
    }
  return named;
}

}  // namespace plimsoll::models
