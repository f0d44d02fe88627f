// Labelled examples to train on: rows of tokens from shards, each with its labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/labelled/label_file.h"
#include "corpora/labelled/resolve_labels.h"
#include "datasets/shard.h"

namespace plimsoll::corpora {

struct LabelledDatasetOptions {
  int64_t sequence_length = 512;  ///< longer rows are cut at their end
  int64_t vocab_size = 0;         ///< the model's; 0: not checked
  bool token_types = false;       ///< the shards have token types beside them (types_beside)
  /// Tokens of this id at the end of a row are padding, as in transformers.
  std::optional<int64_t> pad_token = {};
  io::Labels labels = {};
  std::string setting = "data.train";  ///< named in messages
};

/// Where an example goes.
struct LabelledRow {
  std::span<int32_t> tokens;      ///< sequence_length, or fewer that hold it
  int32_t* last = nullptr;        ///< the index of the last token that is no padding
  std::span<float> labels;        ///< of single labels one, the class; else one a label
  std::span<int32_t> types = {};  ///< as many as tokens, with LabelledDatasetOptions::token_types
};

/// Examples with random access. Everything is sized when opened; reading allocates nothing. Const calls from
/// any thread, each with its own scratch.
class LabelledDataset {
 public:
  /// `shards` with labels beside them (labels_beside), which have passed check_labels. Errors: kBadData for
  /// missing or damaged files, and where a shard and its labels are not each other's; kInvalidArgument for
  /// another vocabulary; kIo.
  static Result<LabelledDataset> open(std::span<const std::string> shards,
                                      const LabelledDatasetOptions& options);
  LabelledDataset(LabelledDataset&&) noexcept;
  LabelledDataset& operator=(LabelledDataset&&) noexcept;
  ~LabelledDataset();

  [[nodiscard]] int64_t size() const;
  /// In the files, what will be cut included.
  [[nodiscard]] int64_t num_tokens() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  /// The same number, the same examples and labels.
  [[nodiscard]] uint64_t fingerprint() const;

  /// Keeps the files in memory that fit `room` bytes, which become less. Errors: as read.
  Status keep_within(int64_t& room);

  /// Tokens of a row, cut; what of them is padding is not looked at. Errors: kBadData, kIo.
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const;
  /// Reads example `index`; behind its tokens stands the padding token, 0 where there is none, behind its
  /// types 0. Returns its tokens without padding. Errors: kBadData (damaged since it was opened), kIo.
  Result<int64_t> read(int64_t index, const LabelledRow& row, std::span<std::byte> scratch) const;

 private:
  struct State;
  explicit LabelledDataset(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::corpora
