// Decides which part of a picture becomes which part of the output, and at what size.
#pragma once

#include <cstdint>

#include "images/augment.h"
#include "images/image_info.h"
#include "images/processor.h"
#include "images/resample.h"

namespace plimsoll::images {

/// One axis of the way from a picture to the output.
///
///   picture   |------[ box_begin ... box_begin + range.input )-----|      cut out of the oriented picture
///   resized          [0 ........ range.output)                            to so many pixels
///   output       pad [first_output, + count) rest black                   of which these are kept
struct AxisPlan {
  int64_t box_begin = 0;
  AxisRange range;
  int64_t pad = 0;  ///< output elements before the first that the picture covers
};

struct Geometry {
  AxisPlan x, y;
  /// Resize columns before rows. Pillow 13 does so where the height shrinks by more than twice as many pixels
  /// as the width; both orders round in between, so they differ by a level here and there.
  bool vertical_first = false;
};

struct Box {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

/// The processor's own resize and crop of an oriented picture.
/// Precondition: width and height are positive; the processor is checked.
Geometry geometry(int64_t width, int64_t height, const Processor& processor);
/// Cuts out the box and resizes it to the processor's height x width.
Geometry geometry(const Box& box, const Processor& processor);

/// Memory to resize by that geometry, from rows as they come or (`stored`) from the box as a whole.
int64_t resize_bytes(const Geometry& geometry, Interpolation interpolation, bool stored);
/// The most that any box of a random resized crop takes.
int64_t most_crop_bytes(int64_t width, int64_t height, const Processor& processor, const Augmentation& crop,
                        bool stored);

}  // namespace plimsoll::images
