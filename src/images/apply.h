// Draws augmentations and applies them to a picture's bytes.
#pragma once

#include <span>

#include "images/arena.h"
#include "images/augment.h"
#include "images/geometry.h"
#include "images/processor.h"

namespace plimsoll::images {

/// The box of a random resized crop: ten tries of a share of the area and an aspect ratio, then the middle of
/// the picture at the nearest ratio allowed. Precondition: `crop` stands first in the draw's list.
Box draw_crop(const Draw& draw, const Augmentation& crop, int64_t width, int64_t height);

/// Applies the draw's augmentations but for a random resized crop, in order, to u8 [height, width, 3].
void apply(const Draw& draw, const Processor& processor, std::span<uint8_t> pixels, Arena& arena);
/// What that takes of an arena.
int64_t apply_bytes(const Augmentations& augmentations, const Processor& processor);

}  // namespace plimsoll::images
