#include "images/auto_augment.h"

#include <cmath>

#include "images/adjust.h"
#include "images/warp.h"

namespace plimsoll::images {
namespace {

bool has_magnitude(Change change) {
  return change != Change::kIdentity && change != Change::kAutoContrast && change != Change::kEqualize;
}

bool has_sign(Change change) {
  return has_magnitude(change) && change != Change::kPosterize && change != Change::kSolarize;
}

}  // namespace

double magnitude_of(Change change, const Augmentation& augmentation, int64_t bin, int64_t height,
                    int64_t width) {
  const bool wide = augmentation.kind == Augmentation::Kind::kTrivialAugment;
  const double last = static_cast<double>(augmentation.num_magnitude_bins - 1);
  const double share = last == 0 ? 0 : static_cast<double>(bin) / last;
  constexpr double kMostShift = 150.0 / 331;  // of the side
  switch (change) {
    case Change::kShearX:
    case Change::kShearY:
      return share * (wide ? 0.99 : 0.3);
    case Change::kTranslateX:
      return share * (wide ? 32 : kMostShift * static_cast<double>(width));
    case Change::kTranslateY:
      return share * (wide ? 32 : kMostShift * static_cast<double>(height));
    case Change::kRotate:
      return share * (wide ? 135 : 30);
    case Change::kPosterize:
      return std::nearbyint(8 - share * (wide ? 6 : 4));
    case Change::kSolarize:
      return 1 - share;
    default:
      return share * (wide ? 0.99 : 0.9);
  }
}

void apply_change(Change change, double magnitude, const Canvas& canvas) {
  const auto [pixels, before, height, width] = canvas;
  const auto moved = [&canvas](const AffineMatrix& matrix) {
    warp(canvas.pixels, canvas.before, canvas.height, canvas.width, matrix);
  };
  switch (change) {
    case Change::kIdentity:
      return;
    case Change::kShearX:
      return moved(shear_x(magnitude, height, width));
    case Change::kShearY:
      return moved(shear_y(magnitude, height, width));
    case Change::kTranslateX:
      return moved(translation(std::trunc(magnitude), 0));
    case Change::kTranslateY:
      return moved(translation(0, std::trunc(magnitude)));
    case Change::kRotate:
      return moved(rotation(magnitude));
    case Change::kBrightness:
      return adjust_brightness(pixels, 1 + magnitude);
    case Change::kColor:
      return adjust_saturation(pixels, 1 + magnitude);
    case Change::kContrast:
      return adjust_contrast(pixels, 1 + magnitude);
    case Change::kSharpness:
      return adjust_sharpness(pixels, before, height, width, 1 + magnitude);
    case Change::kPosterize:
      return posterize(pixels, static_cast<int>(magnitude));
    case Change::kSolarize:
      return solarize(pixels, 255 * magnitude);
    case Change::kAutoContrast:
      return autocontrast(pixels);
    case Change::kEqualize:
      return equalize(pixels);
  }
}

void auto_augment(const Augmentation& augmentation, RandomStream& random, const Canvas& canvas) {
  const bool trivial = augmentation.kind == Augmentation::Kind::kTrivialAugment;
  const int64_t count = trivial ? 1 : augmentation.num_ops;
  for (int64_t i = 0; i < count; ++i) {
    const auto change = static_cast<Change>(random.below(kNumChanges));
    double magnitude = 0;
    if (has_magnitude(change)) {
      const int64_t bin = trivial ? random.below(augmentation.num_magnitude_bins) : augmentation.magnitude;
      magnitude = magnitude_of(change, augmentation, bin, canvas.height, canvas.width);
    }
    if (has_sign(change) && random.happens(0.5)) magnitude = -magnitude;
    apply_change(change, magnitude, canvas);
  }
}

}  // namespace plimsoll::images
