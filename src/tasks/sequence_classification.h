// Classification of sequences as wholes: transformers' …ForSequenceClassification. The head scores the last
// token that is no padding; which one that is comes with the data.
#pragma once

#include <memory>
#include <optional>

#include "io/label_fields.h"
#include "tasks/task.h"

namespace plimsoll::tasks {

/// Inputs: "tokens" i32[batch, length], "last" i32[batch], "labels" i32[batch] (single_label,
/// ops::kIgnoreTarget in rows without an example) or f32[batch, labels] (NaN there). Logits [batch, labels].
///   single_label   cross-entropy of the label
///   multi_label    binary cross-entropy with logits, a mean over the labels
///   regression     squared error, a mean over the outputs
/// summed over the sequences; metrics as metrics.h has them.
/// `pad_token`: see LabelledDatasetOptions. Its data are shards with labels beside them.
std::unique_ptr<Task> make_sequence_classification(const io::Labels& labels,
                                                   std::optional<int64_t> pad_token = {},
                                                   const TokenSizes& sizes = {});

}  // namespace plimsoll::tasks
