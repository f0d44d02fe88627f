// Brings examples to where the programs read them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "datasets/loader.h"
#include "datasets/training_data.h"
#include "runtime/session.h"
#include "tasks/task.h"

namespace plimsoll::training {

/// The inputs of a micro-batch, and what is drawn for it, written as one block: while the device computes the
/// last ones, the next may be written. Allocates nothing once made.
class BatchFeeder {
 public:
  /// `lengths`: the buckets, ascending, or the one length. Session and task outlive the feeder.
  BatchFeeder(runtime::Session& session, const tasks::Task& task, std::span<const int64_t> lengths);

  /// Which of the lengths; it is one of them.
  [[nodiscard]] size_t bucket_of(int64_t length) const;
  /// What the next inputs draw from: the seed, and the step.
  void set_random(int64_t seed, int64_t step);
  /// Rows [first, first + micro batch) of a loaded batch to the inputs of a bucket that holds them; those
  /// from `end` on are padding. Errors: of the device.
  Status copy(const datasets::LoadedBatch& batch, int64_t first, int64_t end, size_t bucket);
  /// Rows of no data, the same in each run: for benchmarks.
  Status synthesise(uint64_t key, int64_t first, size_t bucket);
  /// The examples at up to a micro-batch of positions that TrainingData::look_up gave, which the bucket
  /// holds; the rows behind them are padding, which counts nowhere. Errors: as TrainingData::read_at; of the
  /// device.
  Result<datasets::ExampleCounts> read(const datasets::TrainingData& data, std::span<const int64_t> looked_up,
                                       size_t bucket, std::span<std::byte> scratch);
  /// As many rows as `fill_row` fills, from the first on; those behind them are padding. Errors: fill_row's;
  /// of the device.
  Status fill(size_t bucket, int64_t rows,
              const std::function<Status(int64_t row, datasets::ExampleRow to)>& fill_row);
  /// An example's part of what was written last, until the next inputs are.
  [[nodiscard]] datasets::ExampleRow row(size_t bucket, int64_t row);

 private:
  struct Inputs {
    int64_t length = 0;
    int64_t rows = 0;
    runtime::BlockId block;
    bool draws = false;
  };
  /// Host memory for a bucket's next inputs. Errors: of the device.
  Status begin(size_t bucket, int64_t first);
  Status commit(size_t bucket);

  runtime::Session& session_;
  const tasks::Task& task_;
  const std::vector<datasets::TensorSpec>& tensors_;  ///< the task's
  std::vector<Inputs> inputs_;                        ///< by bucket
  std::vector<std::span<std::byte>> row_;
  std::array<int32_t, 4> random_{};
};

}  // namespace plimsoll::training
