// Blends a row of RGBA with white.
#pragma once

#include <cstdint>

namespace plimsoll::images {

/// Makes RGB of RGBA in place, rounded to the nearest, as Pillow's paste with a mask does.
inline void put_on_white(uint8_t* row, int64_t width) {
  for (int64_t x = 0; x < width; ++x) {
    const int alpha = row[4 * x + 3];
    for (int c = 0; c < 3; ++c) {
      const int sum = 255 * (255 - alpha) + row[4 * x + c] * alpha + 128;
      row[3 * x + c] = static_cast<uint8_t>(((sum >> 8) + sum) >> 8);
    }
  }
}

}  // namespace plimsoll::images
