// Loads a picture in every way, in exactly the scratch memory that its header promises. Whatever is accepted
// gives the same pixels again, whichever other pictures come between, and needs no more memory than was said.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "allocation_bound.h"
#include "base/check.h"
#include "images/load.h"

namespace image_file {

using namespace plimsoll::images;

inline constexpr std::byte kGuard{0xA5};
inline constexpr size_t kGuardBytes = 256;

inline Processor small_processor(uint8_t choice) {
  Processor processor{.height = 5, .width = 8, .resize_height = 5, .resize_width = 8, .max_pixels = 1 << 18};
  processor.interpolation = static_cast<Interpolation>(choice & 3);
  processor.backend = (choice & 4) != 0 ? Backend::kTorch : Backend::kPil;
  processor.alpha = (choice & 8) != 0 ? Alpha::kWhite : Alpha::kDrop;
  processor.orientation = (choice & 16) != 0 ? Orientation::kIgnore : Orientation::kExif;
  if ((choice & 32) == 0) return processor;
  processor.resize = Resize::kShortest;
  processor.shortest = 9;
  processor.crop = Crop::kCenter;
  return processor;
}

/// The pixels, or nothing; the memory behind the scratch memory stays as it was.
inline std::vector<uint8_t> pixels_of(std::span<const std::byte> file, const ImageInfo& info,
                                      uint8_t choice) {
  static const Augmentations kAugmentations = {{.kind = Augmentation::Kind::kRandomResizedCrop},
                                               {.kind = Augmentation::Kind::kFlip},
                                               {.kind = Augmentation::Kind::kTrivialAugment}};
  const Processor processor = small_processor(choice);
  const Draw draw{.seed = choice, .augmentations = (choice & 64) != 0 ? &kAugmentations : nullptr};
  const auto bytes = static_cast<size_t>(scratch_bytes(info, processor, draw.augmentations));
  std::vector<std::byte> scratch(bytes + kGuardBytes, kGuard);
  std::vector<uint8_t> pixels(5 * 8 * 3);
  const AllocationBound bound;
  const plimsoll::Status status = load(file, processor, &draw, pixels, std::span(scratch).first(bytes));
  bound.check(8192);  // a thread's decompressor, messages
  for (const std::byte guard : std::span(scratch).last(kGuardBytes)) PLIMSOLL_CHECK(guard == kGuard);
  if (status.ok()) return pixels;
  const std::string& what = status.error().what;
  PLIMSOLL_CHECK(!what.empty() && what.find("memory") == std::string::npos,
                 "the header promised too little: " + what);
  return {};
}

inline void check(std::span<const std::byte> file, uint8_t choice) {
  const auto info = probe(file);
  if (!info) {
    PLIMSOLL_CHECK(!info.error().what.empty(), "a failure without its reason");
    return;
  }
  PLIMSOLL_CHECK(info->width > 0 && info->height > 0 && info->decode_bytes > 0);
  PLIMSOLL_CHECK(info->orientation >= 1 && info->orientation <= 8);
  if (!check_picture(*info, small_processor(choice))) return;
  const std::vector<uint8_t> first = pixels_of(file, *info, choice);
  PLIMSOLL_CHECK(pixels_of(file, *info, choice) == first, "other pixels the second time");
}

}  // namespace image_file
