// Inspects the first examples of training data for `plimsoll init`.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/labelled/raw_label.h"
#include "settings/run_config.h"

namespace plimsoll::analysis {

enum class DataKind : uint8_t { kTokens, kTexts, kCompletions, kConversations };

struct DataLook {
  DataKind kind = DataKind::kTexts;
  bool labelled = false;  ///< lines with a label: examples to classify
  bool asks = false;      ///< questions about texts, or SQuAD's files
  corpora::RawLabelKind label_kind = corpora::RawLabelKind::kAbsent;  ///< of the first label
  std::set<std::string> labels = {};  ///< classes that were seen, by name or number
  int64_t examples = 0;               ///< in all, estimated by their bytes where only the first were read
  bool is_estimate = false;
  std::vector<int64_t> lengths =
      {};  ///< tokens of each example that was read, ascending; none of token files
  std::vector<uint64_t> hashes = {};      ///< of each, by which data.eval_fraction divides
  std::vector<std::string> classes = {};  ///< of each with a label of a class, in the order of `hashes`

  /// "about 12,000 conversations".
  [[nodiscard]] std::string text() const;
};

/// Reads up to 512 examples of data.train with the run's tokenizer and template. Errors: kBadData of files,
/// tokenizer and template, and where an example is none.
Result<DataLook> look_at_data(const settings::RunConfig& config);

}  // namespace plimsoll::analysis
