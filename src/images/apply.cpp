#include "images/apply.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "images/adjust.h"
#include "images/auto_augment.h"
#include "images/random_stream.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

using Kind = Augmentation::Kind;

RandomStream stream(const Draw& draw, size_t place) {
  return {draw.seed, draw.sample, draw.epoch, static_cast<int64_t>(place)};
}

double drawn_ratio(RandomStream& random, const Augmentation::Range& range) {
  return std::exp(random.uniform(std::log(range[0]), std::log(range[1])));
}

int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

class Applier {
 public:
  Applier(const Processor& processor, std::span<uint8_t> pixels, Arena& arena)
      : processor_(processor),
        height_(processor.height),
        width_(processor.width),
        pixels_(pixels),
        arena_(arena) {}

  void apply(const Augmentation& augmentation, RandomStream& random) {
    switch (augmentation.kind) {
      case Kind::kRandomResizedCrop:
        return;  // done where the picture is resized
      case Kind::kFlip:
        return flip(augmentation, random);
      case Kind::kVerticalFlip:
        return vertical_flip(augmentation, random);
      case Kind::kColorJitter:
        return color_jitter(augmentation, random);
      case Kind::kErase:
        return erase(augmentation, random);
      case Kind::kRandAugment:
      case Kind::kTrivialAugment:
        const std::span<uint8_t> before = arena_.take<uint8_t>(static_cast<int64_t>(pixels_.size()));
        return auto_augment(augmentation, random, {pixels_, before, height_, width_});
    }
  }

 private:
  uint8_t* pixel(int64_t x, int64_t y) { return &pixels_[at(3 * (y * width_ + x))]; }

  void flip(const Augmentation& augmentation, RandomStream& random) {
    if (!random.happens(augmentation.p)) return;
    for (int64_t y = 0; y < height_; ++y) mirror_row(pixel(0, y), width_);
  }

  void vertical_flip(const Augmentation& augmentation, RandomStream& random) {
    if (!random.happens(augmentation.p)) return;
    for (int64_t top = 0, bottom = height_ - 1; top < bottom; ++top, --bottom)
      std::swap_ranges(pixel(0, top), pixel(0, top) + 3 * width_, pixel(0, bottom));
  }

  // Four changes in a random order, each with a factor of its own.
  void color_jitter(const Augmentation& augmentation, RandomStream& random) {
    std::array order = {0, 1, 2, 3};
    for (int64_t i = 3; i > 0; --i) std::swap(order[at(i)], order[at(random.below(i + 1))]);
    const std::array ranges = {augmentation.brightness, augmentation.contrast, augmentation.saturation,
                               augmentation.hue};
    std::array<double, 4> factors{};
    for (size_t i = 0; i < factors.size(); ++i) factors[i] = random.uniform(ranges[i][0], ranges[i][1]);
    constexpr std::array kChanges = {adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue};
    constexpr std::array kNeutral = {1.0, 1.0, 1.0, 0.0};
    for (const int which : order)
      if (factors[at(which)] != kNeutral[at(which)]) kChanges[at(which)](pixels_, factors[at(which)]);
  }

  // What normalises to about 0: the mean.
  void erase(const Augmentation& augmentation, RandomStream& random) {
    if (!random.happens(augmentation.p)) return;
    const double area = static_cast<double>(height_ * width_);
    for (int tries = 0; tries < 10; ++tries) {
      const double share = area * random.uniform(augmentation.scale[0], augmentation.scale[1]);
      const double ratio = drawn_ratio(random, augmentation.ratio);
      const int64_t h = rounded(std::sqrt(share * ratio)), w = rounded(std::sqrt(share / ratio));
      if (h >= height_ || w >= width_) continue;
      const int64_t top = random.below(height_ - h + 1), left = random.below(width_ - w + 1);
      std::array<uint8_t, 3> mean{};
      for (size_t c = 0; c < 3; ++c) {
        const double level = processor_.rescale == 0 ? 0 : processor_.mean[c] / processor_.rescale;
        mean[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(level), 0.0, 255.0));
      }
      for (int64_t y = top; y < top + h; ++y)
        for (int64_t x = left; x < left + w; ++x) std::ranges::copy(mean, pixel(x, y));
      return;
    }
  }

  const Processor& processor_;
  int64_t height_, width_;
  std::span<uint8_t> pixels_;
  Arena& arena_;
};

}  // namespace

Box draw_crop(const Draw& draw, const Augmentation& crop, int64_t width, int64_t height) {
  RandomStream random = stream(draw, 0);
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (int tries = 0; tries < 10; ++tries) {
    const double share = area * random.uniform(crop.scale[0], crop.scale[1]);
    const double ratio = drawn_ratio(random, crop.ratio);
    const int64_t w = rounded(std::sqrt(share * ratio)), h = rounded(std::sqrt(share / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const int64_t top = random.below(height - h + 1), left = random.below(width - w + 1);
    return {.left = left, .top = top, .width = w, .height = h};
  }
  Box box{.width = width, .height = height};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < crop.ratio[0])
    box.height = std::clamp<int64_t>(rounded(static_cast<double>(width) / crop.ratio[0]), 1, height);
  if (ratio > crop.ratio[1])
    box.width = std::clamp<int64_t>(rounded(static_cast<double>(height) * crop.ratio[1]), 1, width);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

void apply(const Draw& draw, const Processor& processor, std::span<uint8_t> pixels, Arena& arena) {
  const int64_t used = arena.used();
  for (size_t place = 0; place < draw.augmentations->size(); ++place) {
    RandomStream random = stream(draw, place);
    Applier(processor, pixels, arena).apply((*draw.augmentations)[place], random);
    arena.rewind(used);
  }
}

int64_t apply_bytes(const Augmentations& augmentations, const Processor& processor) {
  const bool copies = std::ranges::any_of(augmentations, [](const Augmentation& augmentation) {
    return augmentation.kind == Kind::kRandAugment || augmentation.kind == Kind::kTrivialAugment;
  });
  return copies ? arena_piece(3 * processor.height * processor.width) : 0;
}

}  // namespace plimsoll::images
