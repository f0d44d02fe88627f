#include "images/processor.h"

#include <fmt/format.h>

#include <cmath>

namespace plimsoll::images {
namespace {

Error wrong_processor(std::string what) {
  return {.code = ErrorCode::kInvalidArgument, .what = std::move(what), .hint = "correct data.images"};
}

Status check_side(std::string_view what, int64_t side) {
  constexpr int64_t kLongestSide = 1 << 14;
  if (side >= 1 && side <= kLongestSide) return Ok{};
  return wrong_processor(fmt::format("{} is {}, expected 1 to {}", what, side, kLongestSide));
}

}  // namespace

std::string_view name(Resize resize) {
  constexpr std::string_view kNames[] = {"none", "shortest", "exact"};
  return kNames[static_cast<int>(resize)];
}
std::string_view name(Interpolation interpolation) {
  constexpr std::string_view kNames[] = {"nearest", "bilinear", "bicubic", "lanczos"};
  return kNames[static_cast<int>(interpolation)];
}
std::string_view name(Crop crop) { return crop == Crop::kNone ? "none" : "center"; }
std::string_view name(Orientation orientation) {
  return orientation == Orientation::kExif ? "exif" : "ignore";
}
std::string_view name(Alpha alpha) { return alpha == Alpha::kDrop ? "drop" : "white"; }
std::string_view name(Backend backend) { return backend == Backend::kPil ? "pil" : "torch"; }

Processor default_processor(int64_t size) {
  return {.height = size, .width = size, .resize_height = size, .resize_width = size};
}

Status check(const Processor& processor) {
  PLIMSOLL_TRY(check_side("the pictures' height", processor.height));
  PLIMSOLL_TRY(check_side("the pictures' width", processor.width));
  const bool cropped = processor.crop == Crop::kCenter;
  if (processor.resize == Resize::kShortest) {
    PLIMSOLL_TRY(check_side("the shortest side", processor.shortest));
    if (!cropped)
      return wrong_processor(
          "resize: shortest leaves pictures of different sizes; crop: center makes them one");
  }
  if (processor.resize == Resize::kExact) {
    PLIMSOLL_TRY(check_side("the height that pictures are resized to", processor.resize_height));
    PLIMSOLL_TRY(check_side("the width that pictures are resized to", processor.resize_width));
    const bool same =
        processor.resize_height == processor.height && processor.resize_width == processor.width;
    if (!cropped && !same) return wrong_processor("resize: exact and crop: none give two different sizes");
  }
  if (processor.max_pixels < 1 || processor.max_pixels > int64_t{1} << 32)
    return wrong_processor(
        fmt::format("max_pixels is {}, expected 1 to {}", processor.max_pixels, int64_t{1} << 32));
  if (!std::isfinite(processor.rescale)) return wrong_processor("rescale is not a finite number");
  for (int c = 0; c < 3; ++c) {
    if (!std::isfinite(processor.mean[c])) return wrong_processor("mean is not a finite number");
    if (!std::isfinite(processor.std[c]) || processor.std[c] <= 0)
      return wrong_processor("std is not a number above 0");
  }
  return Ok{};
}

}  // namespace plimsoll::images
