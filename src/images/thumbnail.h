// A small copy of an image for a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace plimsoll::images {

/// The middle square of an image, `side` pixels wide, as a PNG file's bytes; smaller images stay as they are
/// wide. Errors: kBadData as load.
Result<std::string> thumbnail_png(std::span<const std::byte> file, int64_t side);

}  // namespace plimsoll::images
