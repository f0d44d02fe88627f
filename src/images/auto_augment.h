// RandAugment and TrivialAugment: changes drawn from a list of fourteen.
#pragma once

#include <cstdint>
#include <span>

#include "images/augment.h"
#include "images/random_stream.h"

namespace plimsoll::images {

struct Canvas {
  std::span<uint8_t> pixels;  ///< u8 [height, width, 3]
  std::span<uint8_t> before;  ///< as many bytes, overwritten
  int64_t height = 0, width = 0;
};

/// The changes, in torchvision's order.
enum class Change : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize
};
inline constexpr int64_t kNumChanges = 14;

/// Draws and applies rand_augment's num_ops changes, or trivial_augment's one.
void auto_augment(const Augmentation& augmentation, RandomStream& random, const Canvas& canvas);

/// One change with its magnitude: pixels for translations, degrees, factors less 1, bits, a share of 255.
void apply_change(Change change, double magnitude, const Canvas& canvas);

/// The magnitude of bin `bin`, before its sign is drawn.
double magnitude_of(Change change, const Augmentation& augmentation, int64_t bin, int64_t height,
                    int64_t width);

}  // namespace plimsoll::images
