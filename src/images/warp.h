// Affine changes of a picture: nearest neighbours, black where nothing is.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace plimsoll::images {

/// Output (x, y) to input, relative to the middle of the picture: {x' = m[0] x + m[1] y + m[2], y' = m[3] …}.
using AffineMatrix = std::array<double, 6>;

/// torchvision's matrices: shears are about the upper left corner, angles in degrees against the clock.
AffineMatrix shear_x(double amount, int64_t height, int64_t width);
AffineMatrix shear_y(double amount, int64_t height, int64_t width);
AffineMatrix translation(double x, double y);
AffineMatrix rotation(double degrees);

/// `before` holds as many bytes as `pixels` and is overwritten.
void warp(std::span<uint8_t> pixels, std::span<uint8_t> before, int64_t height, int64_t width,
          const AffineMatrix& matrix);

}  // namespace plimsoll::images
