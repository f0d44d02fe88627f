// A picture's file to the bytes of a model's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "images/augment.h"
#include "images/image_info.h"
#include "images/processor.h"

namespace plimsoll::images {

/// Scratch memory that `load` takes at most for this picture, decoding and resizing included; with
/// `augmentations` also for whatever they draw.
int64_t scratch_bytes(const ImageInfo& info, const Processor& processor,
                      const Augmentations* augmentations = nullptr);

/// Decodes, orients, resizes, crops and augments one picture into `pixels`, u8 [height, width, 3].
/// Preconditions: `pixels` holds exactly that; `scratch` at least scratch_bytes of the picture.
/// Memory: everything is in `scratch`, its alignment does not matter; a thread's first JPEG keeps a few
/// kilobytes. Determinism: the bytes depend on file, processor and draw alone. Errors: kBadData as probe and
/// check_picture, and for damaged or truncated data; without the file's name, which the caller knows. May be
/// called from any thread.
Status load(std::span<const std::byte> file, const Processor& processor, const Draw* draw,
            std::span<uint8_t> pixels, std::span<std::byte> scratch);

}  // namespace plimsoll::images
