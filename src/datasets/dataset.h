// Files of tokens as sequences of one length. 1-D arrays and texts form one stream, in the order of the list,
// that is cut into sequences; of a 2-D array each row is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/token_source.h"

namespace plimsoll::datasets {

struct DatasetOptions {
  int64_t sequence_length = 512;
  int64_t vocab_size = 0;              ///< ids are checked against it
  int64_t max_sequences = 0;           ///< the first of them; 0: all
  bool keep_tail = false;              ///< evaluation: the rest shorter than a sequence counts as one
  std::string setting = "data.train";  ///< named in messages
};

/// Sequences with random access. Everything is sized when opened; reading allocates nothing.
class Dataset {
 public:
  /// `paths`: files or globs (expanded and sorted each). Ids of the first 16 Mi tokens are checked here, the
  /// others when they are read. Errors: kBadData for missing, empty or broken files, ids beyond the
  /// vocabulary, fewer tokens than a sequence; kInvalidArgument where rows and sequence_length disagree or
  /// 1-D and 2-D files are mixed; kIo.
  static Result<Dataset> open(std::span<const std::string> paths, const DatasetOptions& options);

  [[nodiscard]] int64_t num_sequences() const { return num_sequences_; }
  [[nodiscard]] int64_t sequence_length() const { return options_.sequence_length; }
  /// Tokens in all files, the dropped tail included.
  [[nodiscard]] int64_t num_tokens() const { return starts_.back(); }
  /// Valid tokens of a sequence: sequence_length but for a kept tail.
  [[nodiscard]] int64_t sequence_tokens(int64_t index) const;
  /// Bytes of scratch with which a sequence is read in one go per file.
  [[nodiscard]] int64_t scratch_bytes() const;

  /// Keeps the files in memory that fit `room` bytes, which become less. Errors: as read_sequence.
  Status keep_within(int64_t& room);

  /// Reads sequence `index` into `tokens` (sequence_length values, or fewer that hold a tail; behind a tail
  /// zeros follow).
  /// Thread-safe with a scratch for each thread. Errors: kBadData (an id beyond the vocabulary, a file cut
  /// short), kIo.
  Status read_sequence(int64_t index, std::span<int32_t> tokens, std::span<std::byte> scratch) const;

 private:
  Dataset(std::vector<TokenSource> sources, std::vector<int64_t> starts, DatasetOptions options);
  Status check_first_ids() const;
  Status read_stream(int64_t begin, std::span<int32_t> out, std::span<std::byte> scratch) const;
  std::vector<TokenSource> sources_;
  std::vector<int64_t> starts_;  ///< tokens before each source; the last is the total
  DatasetOptions options_;
  int64_t num_sequences_ = 0;
};

}  // namespace plimsoll::datasets
