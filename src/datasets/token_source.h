// One file of tokens: an .npy array of integers, nanoGPT's or llm.c's .bin, or a .txt file read as bytes.
// Reads go by position through the caller's scratch buffer, so that the plan owns all memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "io/file.h"
#include "io/npy.h"

namespace plimsoll::datasets {

/// Text as bytes: ids 0 to 255 are the bytes, the specials follow. A text file is one document.
struct ByteVocabulary {
  static constexpr int32_t kEos = 256;
  static constexpr int32_t kBos = 257;
  static constexpr int32_t kPad = 258;
  static constexpr int64_t kSize = 259;
  static constexpr int64_t kLeastSize = 256;  ///< a model needs this much; specials only where they are used
  static constexpr int64_t kEnd = 512;        ///< a vocabulary of so many and more is a tokenizer's
};

/// A file of tokens. `read` is const and may be called from any thread, each with its own scratch.
class TokenSource {
 public:
  /// Opens by the name's ending. Errors: kBadData (missing, broken, empty), kInvalidArgument for a kind of
  /// file that is not read, kIo.
  static Result<TokenSource> open(const std::string& path, int64_t vocab_size);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] int64_t num_tokens() const { return header_.num_elements(); }
  [[nodiscard]] bool has_rows() const { return header_.rank == 2; }
  [[nodiscard]] int64_t num_rows() const { return header_.rows; }
  [[nodiscard]] int64_t row_tokens() const { return header_.columns; }
  [[nodiscard]] int element_bytes() const { return header_.element_bytes; }

  /// As plimsoll::keep_within.
  Status keep_within(int64_t& room) { return plimsoll::io::keep_within(file_, room); }

  /// Reads tokens [begin, begin + out.size()) through `scratch` (8 bytes at least; larger means fewer reads).
  /// Errors: kBadData with file, position and id where an id is not in [0, vocab_size); kIo.
  Status read(int64_t begin, std::span<int32_t> out, std::span<std::byte> scratch) const;

 private:
  TokenSource(io::ReadFile file, io::NpyHeader header, int64_t vocab_size)
      : file_(std::move(file)), header_(header), vocab_size_(vocab_size) {}
  io::ReadFile file_;
  io::NpyHeader header_;
  int64_t vocab_size_ = 0;
};

}  // namespace plimsoll::datasets
