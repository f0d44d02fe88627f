// Files of tokens as documents, whatever their kind: what `data inspect` looks at.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "datasets/shard.h"
#include "datasets/token_source.h"

namespace plimsoll::cli {

/// The start of a document.
struct Sample {
  int64_t document = 0;    ///< its number in the file
  int64_t num_tokens = 0;  ///< of the whole document
  std::vector<int32_t> ids;
  std::vector<uint8_t> in_loss;  ///< a byte an id
};

/// A shard; an .npy array, of which each row of a 2-D one is a document; nanoGPT's or llm.c's .bin, or a text
/// as bytes, one document each.
class DataFile {
 public:
  /// Errors: kBadData, kInvalidArgument for another kind of file, kIo.
  static Result<DataFile> open(const std::string& path);
  /// The shard that was made of a file, shown under that file's name and kind. Errors: as Shard::open.
  static Result<DataFile> open_as(const std::string& shard, std::string path, const char* kind);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const datasets::Shard* shard() const { return std::get_if<datasets::Shard>(&file_); }
  [[nodiscard]] bool is_text() const;
  /// "token shard", ".npy array", ".bin tokens", "text as bytes", or what open_as was told.
  [[nodiscard]] const char* kind() const;
  [[nodiscard]] int64_t num_documents() const;
  [[nodiscard]] int64_t num_tokens() const;
  /// Tokens that count as targets: all but the first of each document where nothing else is said.
  [[nodiscard]] int64_t num_targets() const;

  /// The lengths of all documents in order. Errors: as reading.
  Status visit_lengths(const std::function<void(int64_t)>& visit) const;
  /// The first tokens of a document, `most` of them. Errors: kBadData, kIo.
  Result<Sample> sample(int64_t document, int64_t most) const;

 private:
  explicit DataFile(std::variant<datasets::Shard, datasets::TokenSource> file) : file_(std::move(file)) {}
  std::variant<datasets::Shard, datasets::TokenSource> file_;
  std::string shown_path_ = {};  ///< empty: the file's own
  const char* shown_kind_ = nullptr;
};

}  // namespace plimsoll::cli
