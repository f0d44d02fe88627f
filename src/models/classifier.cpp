#include "models/classifier.h"

#include <string>

#include "models/families.h"

namespace plimsoll::models {

Result<io::ConfigJson> as_classifier(const io::ConfigJson& config, const io::Labels& labels) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  const Family* family = find_family(type);
  if (family == nullptr) return config.error("model_type", "a family with a classifier: " + family_names());
  io::ConfigJson classifier(config.fields(), config.source());
  io::set_labels(classifier, std::string(family->class_name) + "ForSequenceClassification", labels);
  return classifier;
}

io::ConfigJson with_class(const io::ConfigJson& config) {
  io::ConfigJson named(config.fields(), config.source());
  const auto type = config.model_type();
  if (!type) return named;
  if (!config.has("model_type")) named.set("model_type", io::Tree::of(*type));
  const io::Tree* given = config.fields().find("architectures");
  if (given != nullptr && !given->items.empty()) return named;
  if (const Family* family = find_family(*type))
    named.set(
        "architectures",
        io::Tree::list({io::Tree::of(std::string(family->class_name) + std::string(family->causal_class))}));
  return named;
}

}  // namespace plimsoll::models
