// Brings sequences to where the programs read them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "data/loader.h"
#include "data/training_data.h"
#include "runtime/session.h"

namespace plimsoll::train {

/// Tokens, targets and starts of documents of a micro-batch, written into the session's input states.
/// Allocates nothing.
class BatchFeeder {
 public:
  /// `lengths`: the buckets, ascending, or the one length. The session outlives the feeder.
  BatchFeeder(runtime::Session& session, std::span<const int64_t> lengths);

  /// Which of the lengths; it is one of them.
  [[nodiscard]] size_t bucket_of(int64_t length) const;
  /// Rows [first, first + micro batch) of a loaded batch to the inputs of a bucket that holds them.
  void copy(const LoadedBatch& batch, int64_t first, size_t bucket);
  /// The sequences at up to a micro-batch of positions that TrainingData::look_up gave, which the bucket
  /// holds; the rows behind them are empty: all targets ignored. Errors: as TrainingData::read_at.
  Result<SequenceCounts> read(const TrainingData& data, std::span<const int64_t> looked_up, size_t bucket,
                              std::span<std::byte> scratch);

 private:
  struct Inputs {
    int64_t length = 0;
    runtime::TensorRef tokens, targets;
    std::optional<runtime::TensorRef> doc_start;
  };
  std::vector<Inputs> inputs_;  ///< by bucket
};

}  // namespace plimsoll::train
