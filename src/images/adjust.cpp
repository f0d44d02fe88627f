#include "images/adjust.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/at.h"

namespace plimsoll::images {
namespace {

// torch converts to bytes by cutting off.
uint8_t to_byte(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

// torch's add with a factor rounds once. The product of two floats is exact in double precision.
float add_product(float sum, float a, float b) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(sum));
}

uint8_t blend(float own, float other, float factor, float rest) {
  return to_byte(add_product(own * factor, other, rest));
}

float grey(const uint8_t* rgb) {
  const float red = static_cast<float>(rgb[0]) * 0.2989F;
  return std::floor(add_product(add_product(red, rgb[1], 0.587F), rgb[2], 0.114F));
}

struct Hsv {
  float h, s, v;
};

Hsv to_hsv(float r, float g, float b) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  if (range == 0) return {0, 0, most};
  const float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
  const float sector = most == r ? bc - gc : most == g ? 2.0F + rc - bc : 4.0F + gc - rc;
  return {std::fmod(sector * (1.0F / 6) + 1.0F, 1.0F), range / most, most};
}

std::array<float, 3> to_rgb(const Hsv& hsv) {
  const float six = hsv.h * 6, sector = std::floor(six), f = six - sector;
  const auto within = [&](float x) { return std::clamp(x * hsv.v, 0.0F, 1.0F); };
  const float p = within(1 - hsv.s), q = within(1 - hsv.s * f), t = within(hsv.s * f + (1 - hsv.s)),
              v = hsv.v;
  switch (static_cast<int>(sector) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

// Each channel's value to another.
using Table = std::array<uint8_t, 256>;

void look_up(std::span<uint8_t> pixels, const std::array<Table, 3>& tables) {
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = tables[i % 3][pixels[i]];
}

}  // namespace

void adjust_brightness(std::span<uint8_t> pixels, double factor) {
  for (uint8_t& byte : pixels) byte = to_byte(static_cast<float>(byte) * static_cast<float>(factor));
}

void adjust_contrast(std::span<uint8_t> pixels, double factor) {
  double sum = 0;
  for (size_t i = 0; i < pixels.size(); i += 3) sum += grey(&pixels[i]);
  const auto mean = static_cast<float>(sum / (static_cast<double>(pixels.size()) / 3));
  const auto own = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  for (uint8_t& byte : pixels) byte = blend(byte, mean, own, rest);
}

void adjust_saturation(std::span<uint8_t> pixels, double factor) {
  const auto own = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  for (size_t i = 0; i < pixels.size(); i += 3) {
    const float other = grey(&pixels[i]);
    for (size_t c = i; c < i + 3; ++c) pixels[c] = blend(pixels[c], other, own, rest);
  }
}

void adjust_hue(std::span<uint8_t> pixels, double shift) {
  constexpr float kToByte = 256 - 1e-3F;  // torchvision's conversion of 0 ... 1
  for (size_t i = 0; i < pixels.size(); i += 3) {
    Hsv hsv = to_hsv(static_cast<float>(pixels[i]) / 255, static_cast<float>(pixels[i + 1]) / 255,
                     static_cast<float>(pixels[i + 2]) / 255);
    hsv.h += static_cast<float>(shift);
    hsv.h -= std::floor(hsv.h);
    const std::array<float, 3> rgb = to_rgb(hsv);
    for (size_t c = 0; c < 3; ++c) pixels[i + c] = static_cast<uint8_t>(rgb[c] * kToByte);
  }
}

void adjust_sharpness(std::span<uint8_t> pixels, std::span<uint8_t> before, int64_t height, int64_t width,
                      double factor) {
  if (height <= 2 || width <= 2) return;
  std::ranges::copy(pixels, before.begin());
  const auto rest = static_cast<float>(1 - factor);
  const int64_t row = 3 * width;
  for (int64_t y = 1; y + 1 < height; ++y) {
    for (int64_t i = y * row + 3; i < (y + 1) * row - 3; ++i) {
      float sum = 0;
      for (const int64_t offset : {-row - 3, -row, -row + 3, int64_t{-3}, int64_t{3}, row - 3, row, row + 3})
        sum += static_cast<float>(before[at(i + offset)]) * (1.0F / 13);
      const float own = before[at(i)];
      const float blurred = std::nearbyint(sum + own * (5.0F / 13));
      pixels[at(i)] = to_byte(add_product(own, blurred - own, rest));
    }
  }
}

void posterize(std::span<uint8_t> pixels, int bits) {
  const auto mask = static_cast<uint8_t>(((1 << bits) - 1) << (8 - bits));
  for (uint8_t& byte : pixels) byte &= mask;
}

void solarize(std::span<uint8_t> pixels, double threshold) {
  for (uint8_t& byte : pixels)
    if (static_cast<float>(byte) >= static_cast<float>(threshold)) byte = static_cast<uint8_t>(255 - byte);
}

void autocontrast(std::span<uint8_t> pixels) {
  std::array<Table, 3> tables{};
  for (size_t c = 0; c < 3; ++c) {
    uint8_t least = 255, most = 0;
    for (size_t i = c; i < pixels.size(); i += 3) {
      least = std::min(least, pixels[i]);
      most = std::max(most, pixels[i]);
    }
    const bool flat = least >= most;
    const float from = flat ? 0 : least, scale = flat ? 1 : static_cast<float>(most - least) * (1.0F / 255);
    for (int v = 0; v < 256; ++v) tables[c][at(v)] = to_byte((static_cast<float>(v) - from) / scale);
  }
  look_up(pixels, tables);
}

void equalize(std::span<uint8_t> pixels) {
  std::array<Table, 3> tables{};
  const auto count = static_cast<int64_t>(pixels.size() / 3);
  for (size_t c = 0; c < 3; ++c) {
    std::array<int64_t, 256> histogram{};
    for (size_t i = c; i < pixels.size(); i += 3) ++histogram[pixels[i]];
    int last = 255;
    while (last > 0 && histogram[at(last)] == 0) --last;
    const int64_t step = (count - histogram[at(last)]) / 255;
    int64_t below = 0;
    for (int v = 0; v < 256; ++v) {
      const int64_t even = step == 0 ? v : (below + step / 2) / step;
      tables[c][at(v)] = static_cast<uint8_t>(std::min<int64_t>(even, 255));
      below += histogram[at(v)];
    }
  }
  look_up(pixels, tables);
}

}  // namespace plimsoll::images
