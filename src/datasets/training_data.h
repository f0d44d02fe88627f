// The training data of a run: the examples of one source, or of several by weight, and which of them stands
// at which position of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/bucket_order.h"
#include "datasets/causal_source.h"
#include "datasets/example_source.h"
#include "datasets/length_buckets.h"
#include "datasets/mixture.h"
#include "datasets/permutation.h"

namespace plimsoll::datasets {

struct TrainingDataOptions : SourceOptions {
  OpenSource open_source = open_causal_source;
  bool shuffle = true;  ///< false: in the files' order
  /// Lengths of rows, ascending, the last pack.sequence_length: positions are rearranged so that the examples
  /// of an effective batch are of about one length. Empty: all rows have sequence_length.
  std::vector<int64_t> buckets = {};
  int64_t global_batch_size = 1;  ///< of an effective batch, for buckets
  int64_t kept_bytes = 0;         ///< of memory at most, for files that are kept there
};

/// Async: const, from any thread.
class TrainingData {
 public:
  /// Errors: kBadData for missing, broken or too short files; kInvalidArgument where shards and streams stand
  /// in one source, a shard is another tokenizer's, or a weight is none; kIo.
  static Result<TrainingData> open(std::span<const DataFiles> sources, const TrainingDataOptions& options);

  /// Positions after which every example has been read at least once.
  [[nodiscard]] int64_t num_examples() const { return num_examples_; }
  /// Of a row; what has no length axis pays it no heed.
  [[nodiscard]] int64_t longest() const { return options_.pack.sequence_length; }
  [[nodiscard]] const PackOptions& pack_options() const { return options_.pack; }
  [[nodiscard]] int64_t num_units() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  /// Of files that are kept in memory.
  [[nodiscard]] int64_t kept_bytes() const { return kept_bytes_; }
  [[nodiscard]] std::span<const std::unique_ptr<ExampleSource>> sources() const { return sources_; }

  /// The examples at positions.size() positions from `first` on, from 0 over the whole run: the least bucket
  /// that holds them, `longest` without buckets, and for `read_at` where each stands in the order
  /// without buckets. A pure function of files, options and positions; one look-up for a whole batch. Errors:
  /// as read_at.
  Result<int64_t> look_up(int64_t first, std::span<int64_t> positions, std::span<std::byte> scratch) const;
  /// The example at a position that `look_up` gave. The rows are at least as long as its bucket. Errors:
  /// kBadData, kIo.
  Result<ExampleCounts> read_at(int64_t looked_up, ExampleRow row, std::span<std::byte> scratch) const;
  /// Its ExampleSource::name. Errors: as read_at.
  Result<std::string> name_at(int64_t looked_up, std::span<std::byte> scratch) const;
  /// Of all sources. Errors: as read_at.
  Result<uint64_t> fingerprint(std::span<std::byte> scratch) const;

 private:
  explicit TrainingData(TrainingDataOptions options) : options_(std::move(options)) {}
  Status set_order(std::span<const DataFiles> files);
  [[nodiscard]] MixturePlace place_of(int64_t position) const;
  [[nodiscard]] BucketOrder::LengthOf length_of() const;
  TrainingDataOptions options_;
  std::vector<std::unique_ptr<ExampleSource>> sources_;
  std::optional<BatchOrder> order_;       ///< of a single source
  std::optional<Mixture> mixture_;        ///< of several
  std::unique_ptr<BucketOrder> buckets_;  ///< over either; null: one length
  int64_t num_examples_ = 0, kept_bytes_ = 0;
};

}  // namespace plimsoll::datasets
