// Shards as sequences to train on: packed, masked, with the starts of documents that keep attention apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/example_source.h"
#include "datasets/packing.h"
#include "datasets/shard.h"

namespace plimsoll::datasets {

struct PackedDatasetOptions {
  PackOptions pack = {};
  int64_t vocab_size = 0;              ///< the model's: a shard's must not be larger; 0: not checked
  uint64_t vocabulary_hash = 0;        ///< the tokenizer's: a shard of another is refused; 0: not checked
  int32_t pad_id = 0;                  ///< what stands behind the last document
  std::string setting = "data.train";  ///< named in messages
};

/// Sequences with random access. Everything is sized when opened; reading allocates nothing.
class PackedDataset {
 public:
  /// Of memory, to remember which blocks of the shards were checked: of a thousand million tokens.
  static constexpr int64_t kRememberedBytes = int64_t{32} << 10;

  /// `paths`: shards or globs (expanded and sorted each). The pack index is kept in `cache_folder`.
  /// Errors: kBadData for missing or damaged shards, or where no sequence comes out; kInvalidArgument for
  /// another vocabulary; kIo.
  static Result<PackedDataset> open(std::span<const std::string> paths, const PackedDatasetOptions& options,
                                    const std::string& cache_folder);

  [[nodiscard]] int64_t num_sequences() const { return index_.report().num_sequences; }
  [[nodiscard]] int64_t sequence_length() const { return options_.pack.sequence_length; }
  /// Tokens that stand in sequences.
  [[nodiscard]] int64_t num_tokens() const { return index_.report().num_tokens; }
  [[nodiscard]] const PackReport& report() const { return index_.report(); }
  [[nodiscard]] std::span<const Shard> shards() const { return shards_; }
  [[nodiscard]] const std::string& index_path() const { return index_.path(); }
  /// Of the data and how they are packed: the same number, the same sequences.
  [[nodiscard]] uint64_t fingerprint() const { return index_.key(); }
  /// Bytes of scratch that read_sequence takes.
  [[nodiscard]] int64_t scratch_bytes() const;

  /// Keeps the index and the shards in memory, those that fit `room` bytes, which become less. Errors: as
  /// read_sequence.
  Status keep_within(int64_t& room);

  /// Tokens of sequence `index`, without padding. Errors: kBadData, kIo.
  Result<int64_t> sequence_tokens(int64_t index, std::span<std::byte> scratch) const;

  /// Reads sequence `index`; the three outputs have as many values each: sequence_length, or fewer that hold
  /// the sequence's tokens.
  ///   tokens     behind the last document pad_id
  ///   targets    the next token of the same piece where it is in the loss, else kNoTarget; empty: not wanted
  ///   doc_start  where in the sequence the token's piece begins; empty: not wanted
  /// A padding token is a document of its own, so that attention spends one score on it.
  /// Thread-safe with a scratch for each thread (scratch_bytes). Errors: kBadData (damaged since it was
  /// opened), kIo.
  Result<ExampleCounts> read_sequence(int64_t index, std::span<int32_t> tokens, std::span<int32_t> targets,
                                      std::span<int32_t> doc_start, std::span<std::byte> scratch) const;

 private:
  struct Outputs {
    std::span<int32_t> tokens, targets, doc_start;
  };
  PackedDataset(std::vector<Shard> shards, PackIndex index, PackedDatasetOptions options);
  [[nodiscard]] Error index_changed() const;
  /// One segment to place `at` of the sequence.
  Status read_segment(const PackSegment& segment, int64_t at, const Outputs& out,
                      std::span<std::byte> scratch, ExampleCounts& counts) const;
  std::vector<Shard> shards_;
  PackIndex index_;
  PackedDatasetOptions options_;
  int64_t mask_bytes_ = 0;   ///< of scratch: a byte a token, where any shard has a mask
  int64_t block_bytes_ = 0;  ///< of scratch: blocks of the shards
};

}  // namespace plimsoll::datasets
