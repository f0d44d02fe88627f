// MixUp and CutMix: each example of an effective batch is blended with the one before it (the first with the
// last), by torchvision's definitions (transforms.v2). One draw a step, keyed by seed and step.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace plimsoll::images {

struct MixSettings {
  double mixup = 0;   ///< alpha of MixUp's Beta(alpha, alpha); 0: none
  double cutmix = 0;  ///< alpha of CutMix's; 0: none. With both, each step draws one of them, evenly.

  [[nodiscard]] bool any() const { return mixup > 0 || cutmix > 0; }
};

/// What a step does with each pair of examples.
struct Mix {
  double share = 1;  ///< of the example's own label; the partner's label has the rest
  bool cut = false;  ///< CutMix: the partner's pixels within the box; else MixUp: share * own + (1 - share) *
                     ///< partner
  int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< the box, ends excluded
};

/// The draw of a step. `share` is re-derived from CutMix's box where the picture's edges clip it.
Mix draw_mix(const MixSettings& settings, uint64_t seed, int64_t step, int64_t height, int64_t width);

/// The partner of example `i` in an effective batch of `batch` examples (torchvision rolls the batch by one).
constexpr int64_t mix_partner(int64_t i, int64_t batch) { return i == 0 ? batch - 1 : i - 1; }

/// Blends the partner's pixels into `pixels`, both u8 [height, width, 3]; MixUp rounds to the nearest byte.
void apply_mix(const Mix& mix, std::span<uint8_t> pixels, std::span<const uint8_t> partner, int64_t width);

}  // namespace plimsoll::images
