// Changes of a picture's colours, by the definitions of torchvision's functional transforms for bytes (u8,
// RGB).
#pragma once

#include <cstdint>
#include <span>

namespace plimsoll::images {

/// Multiplies by the factor.
void adjust_brightness(std::span<uint8_t> pixels, double factor);
/// Blends with the mean grey of the picture: 0 is all grey, 1 unchanged.
void adjust_contrast(std::span<uint8_t> pixels, double factor);
/// Blends with the pixel's own grey.
void adjust_saturation(std::span<uint8_t> pixels, double factor);
/// Turns the hue by a share of the colour circle, in HSV.
void adjust_hue(std::span<uint8_t> pixels, double shift);
/// Blends the inner pixels with a 3 x 3 blur; `before` holds as many bytes and is overwritten.
void adjust_sharpness(std::span<uint8_t> pixels, std::span<uint8_t> before, int64_t height, int64_t width,
                      double factor);
/// Keeps the upper bits.
void posterize(std::span<uint8_t> pixels, int bits);
/// Inverts what is at least the threshold.
void solarize(std::span<uint8_t> pixels, double threshold);
/// Stretches each channel to 0 ... 255.
void autocontrast(std::span<uint8_t> pixels);
/// Makes each channel's histogram even, in Pillow's integer arithmetic.
void equalize(std::span<uint8_t> pixels);

}  // namespace plimsoll::images
