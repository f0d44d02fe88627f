// The label fields of a classifier's config.json: id2label, label2id, num_labels,
// problem_type, and the architecture's name, as transformers reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll::io {

enum class ProblemType : uint8_t { kSingleLabel, kMultiLabel, kRegression };
/// transformers' word: "single_label_classification", "multi_label_classification", "regression".
std::string_view name(ProblemType problem);
/// transformers' words, and "single_label", "multi_label". Nothing for any other.
std::optional<ProblemType> parse_problem_type(std::string_view text);

/// More labels than any classifier has; a head's rows.
inline constexpr int64_t kMaxLabels = int64_t{1} << 16;

/// The labels of a classifier, by id.
struct Labels {
  ProblemType problem = ProblemType::kSingleLabel;
  std::vector<std::string> names = {};

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(names.size()); }
  /// The id of a name.
  [[nodiscard]] std::optional<int64_t> id_of(std::string_view name) const;
  bool operator==(const Labels&) const = default;
};

/// "LABEL_0", …: what transformers calls labels that nobody has named.
std::vector<std::string> default_label_names(int64_t count);

/// What config.json says; empty and nothing where it says nothing.
struct LabelFields {
  std::vector<std::string> names = {};
  std::optional<ProblemType> problem = {};
};
/// id2label with ids from 0 on without gaps and names that differ, else label2id, else num_labels with
/// default names; a classifier without any has two, as in transformers. Errors: kBadData naming the field.
Result<LabelFields> read_label_fields(const ConfigJson& config);

/// Whether architectures names a classifier of sequences ("LlamaForSequenceClassification").
bool is_sequence_classifier(const ConfigJson& config);
/// Whether architectures names a masked language model ("BertForMaskedLM"), or BERT with both heads of its
/// pretraining.
bool is_masked_lm(const ConfigJson& config);
/// Whether architectures names a model that answers questions from a text ("BertForQuestionAnswering").
bool is_question_answering(const ConfigJson& config);
/// Whether architectures names a classifier of images ("ViTForImageClassification").
bool is_image_classifier(const ConfigJson& config);
/// Rows of the classifier's head; 0 where config is none. Errors: kBadData naming the field.
Result<int64_t> num_classifier_labels(const ConfigJson& config);
/// Makes `config` one of a classifier of that architecture with these labels.
void set_labels(ConfigJson& config, const std::string& architecture, const Labels& labels);

/// pad_token_id as it stands there, also a negative one, which no token equals. Errors: kBadData.
Result<std::optional<int64_t>> read_pad_token(const ConfigJson& config);

}  // namespace plimsoll::io
