// Determines the labels of a data set: from the model's config.json and the run's settings as far as those
// say, else from the examples; and whether every example has one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/labelled/label_file.h"
#include "corpora/labelled/labelled_example.h"
#include "io/label_fields.h"

namespace plimsoll::corpora {

/// What is said beforehand. Nothing and empty: auto.
struct LabelRequest {
  io::LabelFields config = {};                  ///< of the model's config.json
  bool whole = false;                           ///< the model has its head: the config's labels are binding
  std::optional<io::ProblemType> problem = {};  ///< classification.problem_type
  std::optional<int64_t> num_labels = {};       ///< classification.num_labels
  std::vector<std::string> names = {};          ///< classification.label_names
};

/// What the examples of a data set have been seen to be.
struct LabelSummary {
  std::optional<RawLabelKind> first = {};  ///< kind of the first example
  bool names = false, numbers = false, lists = false;
  bool binary = true;  ///< lists of 0 and 1
  int64_t width = 1;   ///< of the lists
  float largest = -1;  ///< integer
  std::set<std::string> all_names = {};
  int64_t examples = 0;

  void add(RawLabelKind kind, std::span<const float> values);
};
/// Of label files. Errors: kBadData, kIo of reading them.
Result<LabelSummary> summarize_labels(std::span<const LabelFile* const> files);
/// Of files of JSON lines, of the first `most` examples (0: all), without making tokens of them. Errors: as
/// tokenize_labelled's of lines and labels.
Result<LabelSummary> scan_labels(std::span<const std::string> paths, const LabelledFormat& format,
                                 OnError on_error, int64_t most = 0);

/// The labels. `found` is what they are taken from where nothing else says: the training data, or what is
/// evaluated. Found names are sorted; found integers go up to the largest.
///   problem   the settings', the config's; regression with a single label; else what the examples are:
///             names and integers single_label, numbers regression, lists of 0 and 1 multi_label, other
///             lists regression; where names stand beside numbers that are no classes, the first is right
///   names     the settings', the config's where they are binding or more than default names; else found
/// Examples that contradict the problem are left to check_labels, which knows their places.
/// Errors: kInvalidArgument where settings and config contradict each other or themselves; kBadData where the
/// examples have too few labels or too many.
Result<io::Labels> resolve_labels(const LabelRequest& request, const LabelSummary& found);

/// As far as resolve_labels needs no data; what examples would have to say is taken to be single labels, two
/// of them.
struct EarlyLabels {
  io::Labels labels = {};
  bool certain = false;  ///< no example can change them
};
Result<EarlyLabels> labels_without_data(const LabelRequest& request);

/// That each example has labels of these. `all_occur`: every class of single labels must have an example, as
/// in training; `setting` names the data. Errors: kBadData with the place.
Status check_labels(const io::Labels& labels, std::span<const LabelFile* const> files, bool all_occur,
                    const std::string& setting);

/// The label as training takes it: of single labels one value, the class, else num_labels values. `entry` has
/// passed check_labels with these labels and this file, else kBadData with the place. Allocates nothing but
/// an error.
class LabelReader {
 public:
  LabelReader(const io::Labels& labels, const LabelFile& file);
  Status read(const LabelEntry& entry, std::span<float> values) const;

 private:
  [[nodiscard]] Error bad(const LabelEntry& entry, std::string what, std::string hint) const;
  [[nodiscard]] Error not_expected(const LabelEntry& entry, std::string found) const;
  Status read_class(const LabelEntry& entry, float& value) const;
  [[nodiscard]] std::string known() const;
  const io::Labels* labels_;
  const LabelFile* file_;
  std::vector<float> class_of_name_;  ///< by the file's names; -1: none of the labels
};

}  // namespace plimsoll::corpora
