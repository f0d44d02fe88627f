// Brings sequences to where the programs read them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/result.h"
#include "data/loader.h"
#include "data/training_data.h"
#include "runtime/session.h"

namespace plimsoll::train {

/// Tokens, targets and starts of documents of a micro-batch, written into the session's input states.
/// Allocates nothing.
class BatchFeeder {
 public:
  /// The session outlives the feeder.
  explicit BatchFeeder(runtime::Session& session);

  /// Rows [first, first + micro batch) of a loaded batch.
  void copy(const LoadedBatch& batch, int64_t first);
  /// The sequences at positions [first, first + micro batch); from `end` on rows are empty: all targets
  /// ignored. Errors: as TrainingData::read.
  Result<SequenceCounts> read(const TrainingData& data, int64_t first, int64_t end,
                              std::span<std::byte> scratch);

 private:
  runtime::TensorRef tokens_, targets_;
  std::optional<runtime::TensorRef> doc_start_;
};

}  // namespace plimsoll::train
