// Bytes of images as the numbers that a network takes. The conventions are those of ops.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// What the pixels of each channel become: (pixel * rescale - mean) / std.
struct PixelScale {
  double rescale = 1.0 / 255.0;
  std::vector<double> mean = {}, std = {};  ///< a number a channel
};
inline constexpr size_t kMostChannels = 16;
/// The numbers of an attribute "0.485,0.456,0.406", without the heap; nothing where it is no such list.
struct ChannelNumbers {
  std::array<double, kMostChannels> values{};
  size_t count = 0;
};
std::optional<ChannelNumbers> parse_channel_numbers(std::string_view text);

/// pixels u8[..., C] -> f32[..., C]. Computed in double, rounded once. Op `normalize_pixels`(pixels)
/// {rescale, mean, std, out?}; {mean} and {std} are lists as texts. No derivative.
ValueId normalize_pixels(Builder& b, ValueId pixels, const PixelScale& scale);

}  // namespace plimsoll::ops
