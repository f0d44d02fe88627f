// Readers of the config.json fields that image families have in common: sizes that are a number or a pair,
// lists with a number for each stage, fields without effect on a classifier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"
#include "ops/gelu.h"

namespace plimsoll::models {

struct ImageExtent {
  int64_t height = 0, width = 0;
  bool operator==(const ImageExtent&) const = default;
};

/// The most pixels that a side of an image or a patch may have.
inline constexpr int64_t kMostPixels = 1 << 16;

/// A field that is a side or [height, width]. Errors: kBadData naming the field.
Result<ImageExtent> read_extent(const io::ConfigJson& config, std::string_view field, int64_t if_missing);

/// hidden_act, one of the forms of gelu; "gelu" where it is left out. Errors: kBadData naming the field.
Result<ops::Gelu> read_gelu(const io::ConfigJson& config);

/// A list of numbers from 1 to `most`, one for each of at most 64 stages. Errors: kBadData naming the field.
Result<std::vector<int64_t>> read_stages(const io::ConfigJson& config, std::string_view field, int64_t most,
                                         std::vector<int64_t> if_missing);
/// The most channels of a stage, and the most layers.
inline constexpr int64_t kMostChannels = 1 << 16, kMostLayers = 1 << 10;

/// Marks what every image family's file may hold without effect, and lists the fields that nobody read. The
/// last call of a parser.
std::vector<std::string> finish_image_config(const io::ConfigJson& config);

}  // namespace plimsoll::models
