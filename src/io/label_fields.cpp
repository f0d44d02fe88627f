#include "io/label_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace plimsoll::io {
namespace {

constexpr std::string_view kSequenceHead = "ForSequenceClassification", kImageHead = "ForImageClassification";

struct Word {
  std::string_view text;
  ProblemType problem;
};
constexpr std::array<Word, 5> kWords = {{{"single_label_classification", ProblemType::kSingleLabel},
                                         {"multi_label_classification", ProblemType::kMultiLabel},
                                         {"regression", ProblemType::kRegression},
                                         {"single_label", ProblemType::kSingleLabel},
                                         {"multi_label", ProblemType::kMultiLabel}}};

std::optional<int64_t> parse_id(std::string_view text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id >= kMaxLabels)
    return std::nullopt;
  return id;
}

/// Names laid down by id; every id from 0 on exactly once.
class ById {
 public:
  explicit ById(size_t count) : names_(count), seen_(count, false) {}
  bool put(std::optional<int64_t> id, const std::string& name) {
    if (!id || *id < 0 || static_cast<size_t>(*id) >= names_.size()) return false;
    const auto at = static_cast<size_t>(*id);
    if (seen_[at]) return false;
    seen_[at] = true;
    names_[at] = name;
    return true;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
  std::vector<bool> seen_;
};

/// Whether architectures names a class that ends so.
bool has_head(const ConfigJson& config, std::string_view head) {
  const Tree* architectures = config.fields().find("architectures");
  return architectures != nullptr && std::any_of(architectures->items.begin(), architectures->items.end(),
                                                 [&](const Tree& item) { return item.text.ends_with(head); });
}

bool is_classifier(const ConfigJson& config) {
  return is_sequence_classifier(config) || is_image_classifier(config);
}

bool all_differ(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

Result<std::vector<std::string>> read_names(const ConfigJson& config) {
  for (const std::string_view field : {"id2label", "label2id"}) {
    if (!config.has(field)) continue;
    const bool by_id = field == "id2label";
    const Error wrong =
        config.error(field, by_id ? "an object of names that differ, by id from \"0\" on without gaps"
                                  : "an object of ids by name, from 0 on without gaps");
    const Tree& map = *config.fields().find(field);
    if (map.kind != Tree::Kind::kMap || map.members.empty()) return wrong;
    ById names(map.members.size());
    for (const auto& [key, value] : map.members) {
      const bool fits = by_id ? value.kind == Tree::Kind::kString && names.put(parse_id(key), value.text)
                              : value.kind == Tree::Kind::kInteger && names.put(value.integer, key);
      if (!fits) return wrong;
    }
    std::vector<std::string> by_name = names.take();
    return all_differ(by_name) ? Result<std::vector<std::string>>(std::move(by_name)) : wrong;
  }
  PLIMSOLL_ASSIGN(const auto count, config.optional_integer("num_labels", {1, kMaxLabels}));
  if (count) return default_label_names(*count);
  constexpr int64_t kTransformersDefault = 2;
  return default_label_names(is_classifier(config) ? kTransformersDefault : 0);
}

}  // namespace

std::string_view name(ProblemType problem) {
  return std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.problem == problem; })
      ->text;
}

std::optional<ProblemType> parse_problem_type(std::string_view text) {
  for (const Word& word : kWords)
    if (word.text == text) return word.problem;
  return std::nullopt;
}

std::optional<int64_t> Labels::id_of(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<int64_t>(found - names.begin());
}

std::vector<std::string> default_label_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

Result<LabelFields> read_label_fields(const ConfigJson& config) {
  LabelFields fields;
  PLIMSOLL_ASSIGN(fields.names, read_names(config));
  config.ignore({"id2label", "label2id", "num_labels"});
  if (!config.has("problem_type")) return fields;
  PLIMSOLL_ASSIGN(const std::string word, config.string("problem_type"));
  fields.problem = parse_problem_type(word);
  if (!fields.problem)
    return config.error("problem_type",
                        "single_label_classification, multi_label_classification or regression");
  return fields;
}

bool is_sequence_classifier(const ConfigJson& config) { return has_head(config, kSequenceHead); }

bool is_masked_lm(const ConfigJson& config) {
  return has_head(config, "ForMaskedLM") || has_head(config, "ForPreTraining");
}

bool is_question_answering(const ConfigJson& config) { return has_head(config, "ForQuestionAnswering"); }

bool is_image_classifier(const ConfigJson& config) { return has_head(config, kImageHead); }

Result<int64_t> num_classifier_labels(const ConfigJson& config) {
  if (!is_classifier(config)) {
    config.ignore({"id2label", "label2id", "num_labels", "problem_type"});
    return int64_t{0};
  }
  PLIMSOLL_ASSIGN(const LabelFields fields, read_label_fields(config));
  return static_cast<int64_t>(fields.names.size());
}

void set_labels(ConfigJson& config, const std::string& architecture, const Labels& labels) {
  std::vector<std::pair<std::string, Tree>> names, ids;
  for (size_t i = 0; i < labels.names.size(); ++i) {
    names.emplace_back(std::to_string(i), Tree::of(labels.names[i]));
    ids.emplace_back(labels.names[i], Tree::of(static_cast<int64_t>(i)));
  }
  config.set("architectures", Tree::list({Tree::of(architecture)}));
  config.set("id2label", Tree::map(std::move(names)));
  config.set("label2id", Tree::map(std::move(ids)));
  config.set("problem_type", Tree::of(std::string(name(labels.problem))));
  if (config.fields().find("num_labels") != nullptr) config.set("num_labels", Tree::of(labels.count()));
}

Result<std::optional<int64_t>> read_pad_token(const ConfigJson& config) {
  return config.optional_integer("pad_token_id", {-(int64_t{1} << 24), int64_t{1} << 24});
}

}  // namespace plimsoll::io
