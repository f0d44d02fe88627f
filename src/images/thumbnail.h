// A small copy of an image for a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace plimsoll::images {

/// The middle square of an image, resized to `side` pixels, as the bytes of a PNG file; smaller images are
/// not enlarged. Errors: kBadData as load.
Result<std::string> thumbnail_png(std::span<const std::byte> file, int64_t side);

}  // namespace plimsoll::images
