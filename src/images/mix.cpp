#include "images/mix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/at.h"
#include "images/random_stream.h"

namespace plimsoll::images {
namespace {

double normal(RandomStream& random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Marsaglia & Tsang 2000, "A simple method for generating gamma variables"; below 1 by its boost. The
// logarithm, since for small shapes the number itself is 0 in double precision.
double log_gamma_draw(RandomStream& random, double shape) {
  if (shape < 1) {
    const double u = 1 - random.uniform();
    return log_gamma_draw(random, shape + 1) + std::log(u) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), root = 1 + c * x;
    const double u = 1 - random.uniform();
    if (root <= 0) continue;
    const double cube = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * cube + d * std::log(cube)) return std::log(d * cube);
  }
}

double beta_draw(RandomStream& random, double alpha) {
  const double a = log_gamma_draw(random, alpha), b = log_gamma_draw(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

Mix cut_box(RandomStream& random, double share, int64_t height, int64_t width) {
  const int64_t x = random.below(width), y = random.below(height);
  const double half = 0.5 * std::sqrt(1 - share);
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(height));
  Mix mix{.cut = true,
          .top = std::max<int64_t>(y - half_height, 0),
          .bottom = std::min(y + half_height, height),
          .left = std::max<int64_t>(x - half_width, 0),
          .right = std::min(x + half_width, width)};
  const auto cut = static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left));
  mix.share = 1 - cut / static_cast<double>(height * width);
  return mix;
}

}  // namespace

Mix draw_mix(const MixSettings& settings, uint64_t seed, int64_t step, int64_t height, int64_t width) {
  if (!settings.any()) return {};
  constexpr int64_t kPlace = 255;  // behind every augmentation
  RandomStream random(seed, step, 0, kPlace);
  const bool both = settings.mixup > 0 && settings.cutmix > 0;
  const bool cut = both ? random.happens(0.5) : settings.cutmix > 0;
  const double share = beta_draw(random, cut ? settings.cutmix : settings.mixup);
  if (cut) return cut_box(random, share, height, width);
  return {.share = share};
}

void apply_mix(const Mix& mix, std::span<uint8_t> pixels, std::span<const uint8_t> partner, int64_t width) {
  if (!mix.cut) {
    const auto own = static_cast<float>(mix.share), rest = static_cast<float>(1 - mix.share);
    for (size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<uint8_t>(static_cast<float>(pixels[i]) * own +
                                       static_cast<float>(partner[i]) * rest + 0.5F);
    return;
  }
  for (int64_t y = mix.top; y < mix.bottom; ++y) {
    const int64_t begin = 3 * (y * width + mix.left), count = 3 * (mix.right - mix.left);
    std::ranges::copy(partner.subspan(at(begin), at(count)), pixels.begin() + begin);
  }
}

}  // namespace plimsoll::images
