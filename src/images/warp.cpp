#include "images/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace plimsoll::images {

AffineMatrix shear_x(double amount, int64_t height, int64_t /*width*/) {
  // x' = x + amount (y - top), and the top lies half a height above the middle.
  return {1, amount, amount * static_cast<double>(height) * 0.5, 0, 1, 0};
}

AffineMatrix shear_y(double amount, int64_t /*height*/, int64_t width) {
  return {1, 0, 0, amount, 1, amount * static_cast<double>(width) * 0.5};
}

AffineMatrix translation(double x, double y) { return {1, 0, -x, 0, 1, -y}; }

AffineMatrix rotation(double degrees) {
  const double angle = degrees * (std::numbers::pi / 180), cosine = std::cos(angle), sine = std::sin(angle);
  return {cosine, -sine, 0, sine, cosine, 0};
}

void warp(std::span<uint8_t> pixels, std::span<uint8_t> before, int64_t height, int64_t width,
          const AffineMatrix& matrix) {
  std::ranges::copy(pixels, before.begin());
  std::array<float, 6> m;
  std::ranges::transform(matrix, m.begin(), [](double value) { return static_cast<float>(value); });
  const float middle_x = static_cast<float>(width - 1) * 0.5F,
              middle_y = static_cast<float>(height - 1) * 0.5F;
  uint8_t* out = pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    const float down = static_cast<float>(y) - middle_y;
    for (int64_t x = 0; x < width; ++x, out += 3) {
      const float right = static_cast<float>(x) - middle_x;
      const float from_x = std::nearbyint(m[0] * right + m[1] * down + m[2] + middle_x);
      const float from_y = std::nearbyint(m[3] * right + m[4] * down + m[5] + middle_y);
      const bool inside = from_x >= 0 && from_y >= 0 && from_x < static_cast<float>(width) &&
                          from_y < static_cast<float>(height);
      if (inside) {
        const auto from = static_cast<int64_t>(from_y) * width + static_cast<int64_t>(from_x);
        std::memcpy(out, before.data() + 3 * from, 3);
      } else {
        std::memset(out, 0, 3);
      }
    }
  }
}

}  // namespace plimsoll::images
