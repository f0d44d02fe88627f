// Classification of sequences as wholes: transformers' …ForSequenceClassification. The head scores the last
// token that is no padding; which one that is comes with the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "io/label_fields.h"
#include "models/language_model.h"
#include "tasks/task.h"

namespace plimsoll::tasks {

/// What the rows of a batch hold beside tokens, the last one and labels.
struct SequenceRows {
  /// "doc_start" i32[batch, length]: 0 for tokens; each column of padding is a document of its own, as
  /// models need it whose tokens see those behind them.
  bool doc_start = false;
  int64_t num_token_types = 0;  ///< with more than one "token_types" i32[batch, length], 0 for padding

  [[nodiscard]] bool has_types() const { return num_token_types > 1; }
};
/// Those that a model takes.
SequenceRows rows_of(const models::LanguageModel& model);

/// What stands in an example's row, which is a bucket's length long.
struct SequenceRow {
  std::span<int32_t> tokens = {};
  int32_t* last = nullptr;
  std::span<int32_t> doc_start = {};  ///< empty where the model takes none
  std::span<int32_t> types = {};      ///< as doc_start

  /// The parts of a row of the task's inputs.
  static SequenceRow of(datasets::ExampleRow row, const SequenceRows& rows);
  /// Sets last and doc_start of an example of so many tokens.
  void set_length(int64_t count) const;
};

/// Inputs: "tokens" i32[batch, length], "last" i32[batch], "labels" i32[batch] (single_label,
/// ops::kIgnoreTarget in rows without an example) or f32[batch, labels] (NaN there), and what `rows` says.
/// Logits [batch, labels].
///   single_label   cross-entropy of the label
///   multi_label    binary cross-entropy with logits, a mean over the labels
///   regression     squared error, a mean over the outputs
/// summed over the sequences; metrics as metrics.h has them.
/// `pad_token`: see LabelledDatasetOptions. Its data are shards with labels beside them, and types where
/// `rows` has some.
std::unique_ptr<Task> make_sequence_classification(const io::Labels& labels,
                                                   std::optional<int64_t> pad_token = {},
                                                   const TokenSizes& sizes = {},
                                                   const SequenceRows& rows = {});

}  // namespace plimsoll::tasks
