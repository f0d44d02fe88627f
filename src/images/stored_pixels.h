// Pixels stored as they are, behind a header that makes them a picture like any other: what packs of decoded
// images hold.
//
//   "PLMPIXEL" | width u32 | height u32 | flags u32 | 0 u32 | 0 u64 | height x width x RGB
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "images/byte_reader.h"

namespace plimsoll::images {

struct StoredPixels {
  int64_t width = 0, height = 0;
  bool ready = false;    ///< resized and cropped already, for a processor of this size
  bool damaged = false;  ///< the file could not be decoded: there are no pixels
};

inline constexpr int64_t kStoredHeaderBytes = 32;

/// What stands before the pixels.
std::array<std::byte, kStoredHeaderBytes> stored_header(const StoredPixels& stored);
/// Header and pixels.
constexpr int64_t stored_bytes(int64_t width, int64_t height) {
  return kStoredHeaderBytes + 3 * width * height;
}
bool is_stored(Bytes file);

}  // namespace plimsoll::images
