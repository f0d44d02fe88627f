#include "models/classifier.h"

#include <string>
#include <utility>

#include "models/families.h"

namespace plimsoll::models {

namespace {

Result<io::ConfigJson> as_encoder_class(const io::ConfigJson& config, std::string_view head,
                                        std::string hint) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  const Family* family = find_family(type);
  if (family == nullptr || !is_encoder_family(*family))
    return config.error("model_type", "a family of encoders of text", std::move(hint));
  io::ConfigJson named(config.fields(), config.source());
  named.set("architectures",
            io::Tree::list({io::Tree::of(std::string(family->class_name) + std::string(head))}));
  return named;
}

Result<io::ConfigJson> as_class(const io::ConfigJson& config, const io::Labels& labels, bool of_images) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  const Family* family = find_family(type);
  if (family == nullptr) return config.error("model_type", "a family with a classifier: " + family_names());
  if (is_image_family(*family) != of_images)
    return config.error("model_type", of_images ? "a family of image models" : "a family of language models",
                        of_images ? "set task=sequence_classification" : "set task=image_classification");
  io::ConfigJson classifier(config.fields(), config.source());
  const std::string_view head = of_images ? "ForImageClassification" : "ForSequenceClassification";
  io::set_labels(classifier, std::string(family->class_name) + std::string(head), labels);
  return classifier;
}

}  // namespace

Result<io::ConfigJson> as_classifier(const io::ConfigJson& config, const io::Labels& labels) {
  return as_class(config, labels, /*of_images=*/false);
}

Result<io::ConfigJson> as_masked_lm(const io::ConfigJson& config, const io::Labels& /*labels*/) {
  return as_encoder_class(config, "ForMaskedLM",
                          "masked language models are encoders: name a BERT or a RoBERTa, or set "
                          "task=causal_lm");
}

Result<io::ConfigJson> as_question_answering(const io::ConfigJson& config, const io::Labels& /*labels*/) {
  PLIMSOLL_ASSIGN(const io::ConfigJson named,
                  as_encoder_class(config, "ForQuestionAnswering",
                                   "answers are found in a text by encoders: name a BERT or a RoBERTa"));
  // A classifier's labels would be the rows of the head; without any there are two, begin and end.
  io::Tree fields = named.fields();
  std::erase_if(fields.members, [](const auto& member) {
    return member.first == "id2label" || member.first == "label2id" || member.first == "num_labels" ||
           member.first == "problem_type";
  });
  return io::ConfigJson(std::move(fields), named.source());
}

Result<io::ConfigJson> as_image_classifier(const io::ConfigJson& config, const io::Labels& labels) {
  return as_class(config, labels, /*of_images=*/true);
}

bool is_image_model(const io::ConfigJson& config) {
  const auto type = config.model_type();
  const Family* family = type ? find_family(*type) : nullptr;
  return family != nullptr && is_image_family(*family);
}

bool is_encoder(const io::ConfigJson& config) {
  const auto type = config.model_type();
  const Family* family = type ? find_family(*type) : nullptr;
  return family != nullptr && is_encoder_family(*family);
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
