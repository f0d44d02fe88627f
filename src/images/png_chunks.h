// Walks over the chunks of a PNG.
#pragma once

#include <optional>
#include <string_view>

#include "images/byte_reader.h"

namespace plimsoll::images {

struct PngChunk {
  std::string_view type;  ///< four letters
  Bytes data;
  Bytes whole;  ///< length, type, data and checksum
};

class PngChunks {
 public:
  /// Precondition: the file begins with PNG's signature.
  explicit PngChunks(Bytes file) : file_(file) {}

  /// The next chunk; nothing at the end, or where the file ends within it.
  std::optional<PngChunk> next() {
    constexpr int64_t kFrame = 12;  // all but the data
    const int64_t length = read_number(file_, offset_, 4);
    if (!has(file_, offset_, length + kFrame)) return std::nullopt;
    const Bytes whole = file_.subspan(at(offset_), at(length + kFrame));
    offset_ += length + kFrame;
    return PngChunk{.type = {reinterpret_cast<const char*>(whole.data()) + 4, 4},
                    .data = whole.subspan(8, at(length)),
                    .whole = whole};
  }
  /// What has not been walked over: the beginning of a chunk that the file ends within.
  [[nodiscard]] Bytes rest() const { return file_.subspan(at(offset_)); }

 private:
  Bytes file_;
  int64_t offset_ = 8;  // behind the signature
};

}  // namespace plimsoll::images
