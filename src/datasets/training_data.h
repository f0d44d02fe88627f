// The training data of a run: streams of tokens or packed documents, one source or several by weight, and
// which of their sequences stands at which position of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/batch_layout.h"
#include "datasets/bucket_order.h"
#include "datasets/length_buckets.h"
#include "datasets/mixture.h"
#include "datasets/packed_dataset.h"
#include "datasets/permutation.h"

namespace plimsoll::datasets {

/// The order of a language model's rows, i32 each, as many values each: sequence_length, or fewer that hold
/// the sequence's tokens. The last is there where it is asked for.
enum CausalRow : uint8_t { kTokensRow, kTargetsRow, kDocStartRow };
/// Its batches: tokens and targets, with `documents` where each token's document begins too.
BatchLayout causal_layout(bool documents);

/// Sequences of one kind with random access. Const calls may come from any thread, each with its own scratch.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;
  [[nodiscard]] virtual int64_t num_sequences() const = 0;
  /// Tokens in the source's files.
  [[nodiscard]] virtual int64_t num_tokens() const = 0;
  [[nodiscard]] virtual int64_t scratch_bytes() const = 0;
  /// Tokens of a sequence, without padding. Errors: kBadData, kIo.
  virtual Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const = 0;
  /// A sequence into its part of each tensor of a batch, all of it. Of a language model: tokens, targets (the
  /// next token, or kNoTarget) and where each token's document begins; all of a stream is one document.
  /// Allocates nothing. Errors: kBadData, kIo.
  virtual Result<SequenceCounts> read(int64_t index, SequenceRow row, std::span<std::byte> scratch) const = 0;
  /// Keeps files in memory that fit `room` bytes, which become less. Errors: as read.
  virtual Status keep_within(int64_t& room) = 0;
  /// A number for what would be read: another one, other data. Errors: as read.
  virtual Result<uint64_t> fingerprint(std::span<std::byte> scratch) const = 0;
  /// What packing did; null where nothing was packed.
  [[nodiscard]] virtual const PackReport* pack_report() const { return nullptr; }
  /// Where the index of that lies; empty where nothing was packed.
  [[nodiscard]] virtual std::string index_path() const { return {}; }
};

/// A source of a run: files of one kind.
struct DataFiles {
  std::vector<std::string> paths = {};  ///< .npy and byte texts, or shards
  double weight = 1;                    ///< its share where there are several
};

struct TrainingDataOptions;
/// Opens files of one kind as sequences. Errors: as TrainingData::open.
using OpenSource = std::function<Result<std::unique_ptr<SequenceSource>>(const DataFiles& files,
                                                                         const TrainingDataOptions& options)>;
/// Streams and shards for a language model.
Result<std::unique_ptr<SequenceSource>> open_causal_source(const DataFiles& files,
                                                           const TrainingDataOptions& options);

struct TrainingDataOptions {
  OpenSource open_source = open_causal_source;
  PackOptions pack = {};         ///< of shards; sequence_length and keep_tail are streams' too
  int64_t vocab_size = 0;        ///< the model's
  uint64_t vocabulary_hash = 0;  ///< the tokenizer's; 0: not checked
  uint64_t seed = 0;             ///< of the order
  bool shuffle = true;           ///< false: in the files' order
  /// Lengths of rows, ascending, the last sequence_length: positions are rearranged so that the sequences of
  /// an effective batch are of about one length. Empty: all rows have sequence_length.
  std::vector<int64_t> buckets = {};
  int64_t global_batch_size = 1;       ///< of an effective batch, for buckets
  int64_t kept_bytes = 0;              ///< of memory at most, for files that are kept there
  std::string cache_folder = {};       ///< of pack indexes
  std::string setting = "data.train";  ///< named in messages
};

/// Async: const, from any thread.
class TrainingData {
 public:
  /// Errors: kBadData for missing, broken or too short files; kInvalidArgument where shards and streams stand
  /// in one source, a shard is another tokenizer's, or a weight is none; kIo.
  static Result<TrainingData> open(std::span<const DataFiles> sources, const TrainingDataOptions& options);

  /// Positions after which every sequence has been read at least once.
  [[nodiscard]] int64_t num_sequences() const { return num_sequences_; }
  [[nodiscard]] int64_t sequence_length() const { return options_.pack.sequence_length; }
  [[nodiscard]] const PackOptions& pack_options() const { return options_.pack; }
  [[nodiscard]] int64_t num_tokens() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  /// Of files that are kept in memory.
  [[nodiscard]] int64_t kept_bytes() const { return kept_bytes_; }
  [[nodiscard]] std::span<const std::unique_ptr<SequenceSource>> sources() const { return sources_; }

  /// The sequences at positions.size() positions from `first` on, from 0 over the whole run: the least bucket
  /// that holds them, sequence_length without buckets, and for `read_at` where each stands in the order
  /// without buckets. A pure function of files, options and positions; one look-up for a whole batch. Errors:
  /// as read_at.
  Result<int64_t> look_up(int64_t first, std::span<int64_t> positions, std::span<std::byte> scratch) const;
  /// The sequence at a position that `look_up` gave. The rows are at least as long as its bucket. Errors:
  /// kBadData, kIo.
  Result<SequenceCounts> read_at(int64_t looked_up, SequenceRow row, std::span<std::byte> scratch) const;
  /// Of all sources. Errors: as read_at.
  Result<uint64_t> fingerprint(std::span<std::byte> scratch) const;

 private:
  explicit TrainingData(TrainingDataOptions options) : options_(std::move(options)) {}
  Status set_order(std::span<const DataFiles> files);
  [[nodiscard]] MixturePlace place_of(int64_t position) const;
  [[nodiscard]] BucketOrder::LengthOf length_of() const;
  TrainingDataOptions options_;
  std::vector<std::unique_ptr<SequenceSource>> sources_;
  std::optional<BatchOrder> order_;       ///< of a single source
  std::optional<Mixture> mixture_;        ///< of several
  std::unique_ptr<BucketOrder> buckets_;  ///< over either; null: one length
  int64_t num_sequences_ = 0, kept_bytes_ = 0;
};

}  // namespace plimsoll::datasets
