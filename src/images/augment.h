// Augmentations: random changes of training pictures, by torchvision's definitions (transforms.v2). Each draw
// is keyed by seed, epoch, sample and the augmentation's place in the list, so no number of threads, split of
// the batch or resume changes it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::images {

/// One augmentation with its parameters; which of them mean something follows from `kind`.
struct Augmentation {
  enum class Kind : uint8_t {
    kRandomResizedCrop,
    kFlip,
    kVerticalFlip,
    kColorJitter,
    kErase,
    kRandAugment,
    kTrivialAugment
  };
  using Range = std::array<double, 2>;

  Kind kind = Kind::kFlip;
  double p = 0.5;                    ///< probability of flips and erasing
  Range scale = {0.08, 1.0};         ///< share of the area: of the crop, or of what is erased
  Range ratio = {3.0 / 4, 4.0 / 3};  ///< width / height, drawn uniformly in its logarithm
  Range brightness = {1, 1};         ///< factors of color_jitter; {1, 1} changes nothing
  Range contrast = {1, 1};
  Range saturation = {1, 1};
  Range hue = {0, 0};     ///< shift as a share of the colour circle
  int64_t num_ops = 2;    ///< rand_augment
  int64_t magnitude = 9;  ///< rand_augment
  int64_t num_magnitude_bins = 31;

  bool operator==(const Augmentation&) const = default;
};

/// In the order in which they are applied. A random resized crop stands first and takes the place of the
/// processor's resize and crop.
using Augmentations = std::vector<Augmentation>;

/// Reads a list such as `[random_resized_crop, flip, {color_jitter: {brightness: 0.4}}]`.
/// Errors: kInvalidArgument with the nearest name, or what a parameter has to be.
Result<Augmentations> parse_augmentations(const io::Tree& list);

/// What one picture's random choices depend on.
struct Draw {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample = 0;                            ///< index in the training data
  const Augmentations* augmentations = nullptr;  ///< null: none
};

}  // namespace plimsoll::images
