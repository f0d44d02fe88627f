#include "images/geometry.h"

#include <algorithm>

namespace plimsoll::images {
namespace {

// round(margin / 2) as Python does, to even.
int64_t rounded_half(int64_t margin) {
  const int64_t half = margin / 2;
  return margin % 2 == 0 || half % 2 == 0 ? half : half + 1;
}

// The middle `wanted` elements of an axis that has been resized to `resized`.
AxisPlan cropped(int64_t input, int64_t resized, int64_t wanted, const Processor& processor) {
  AxisPlan plan{.range = {.input = input, .output = resized, .count = std::min(resized, wanted)}};
  const int64_t margin = resized - wanted;
  if (margin >= 0) {
    plan.range.first_output = processor.round_offset ? rounded_half(margin) : margin / 2;
  } else {
    // transformers' numpy code rounds the black margin before the picture up, torchvision's down.
    const bool up = processor.backend == Backend::kPil && !processor.round_offset;
    plan.pad = (-margin + (up ? 1 : 0)) / 2;
  }
  return plan;
}

bool vertical_first(const AxisPlan& x, const AxisPlan& y, Backend backend) {
  const int64_t narrower = std::max<int64_t>(x.range.input - x.range.output, 0);
  return backend == Backend::kPil && y.range.input - y.range.output > 2 * narrower;
}

struct ResizedSize {
  int64_t width, height;
};

ResizedSize resized(int64_t width, int64_t height, const Processor& processor) {
  switch (processor.resize) {
    case Resize::kNone:
      break;
    case Resize::kExact:
      return {processor.resize_width, processor.resize_height};
    case Resize::kShortest: {
      const int64_t side = processor.shortest;
      if (width <= height) return {side, side * height / width};
      return {side * width / height, side};
    }
  }
  return {width, height};
}

}  // namespace

Geometry geometry(int64_t width, int64_t height, const Processor& processor) {
  const ResizedSize size = resized(width, height, processor);
  Geometry result{.x = cropped(width, size.width, processor.width, processor),
                  .y = cropped(height, size.height, processor.height, processor)};
  result.vertical_first = vertical_first(result.x, result.y, processor.backend);
  return result;
}

Geometry geometry(const Box& box, const Processor& processor) {
  Geometry result{.x = {.box_begin = box.left, .range = {box.width, processor.width, 0, processor.width}},
                  .y = {.box_begin = box.top, .range = {box.height, processor.height, 0, processor.height}}};
  result.vertical_first = vertical_first(result.x, result.y, processor.backend);
  return result;
}

int64_t resize_bytes(const Geometry& geometry, Interpolation interpolation, bool stored) {
  const AxisRange &x = geometry.x.range, &y = geometry.y.range;
  const int64_t between = geometry.vertical_first ? x.input : y.input * x.count;
  return axis_bytes(x, interpolation) + axis_bytes(y, interpolation) + arena_piece(3 * between + kRowSlack) +
         (stored || geometry.vertical_first ? arena_piece(3 * x.input * y.input + kRowSlack) : 0);
}

int64_t most_crop_bytes(int64_t width, int64_t height, const Processor& processor, const Augmentation& crop,
                        bool stored) {
  Geometry whole = geometry(Box{.width = width, .height = height}, processor);
  whole.vertical_first = false;
  // A box that is resized by columns first is stored. From its condition height - H > 2 (width - W), in whole
  // pixels, and width >= ratio * height before both are rounded, follows how large it is at most, unless
  // boxes may be higher than twice their width.
  Box box{.width = width, .height = height};
  const double ratio = crop.ratio[0];
  if (ratio > 0.5) {
    const double room = static_cast<double>(2 * processor.width - processor.height) + ratio;
    const double most = std::max(room, 0.0) / (2 * ratio - 1);
    box.height = std::min(height, static_cast<int64_t>(std::min(most, 1e9)) + 1);
  }
  box.width = std::clamp<int64_t>(
      processor.width + std::max<int64_t>(box.height - processor.height, 0) / 2 + 1, 1, width);
  Geometry tall = geometry(box, processor);
  tall.vertical_first = true;
  const Interpolation interpolation = processor.interpolation;
  return std::max(resize_bytes(whole, interpolation, stored), resize_bytes(tall, interpolation, true));
}

}  // namespace plimsoll::images
