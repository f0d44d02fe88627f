// plimsoll inspect on a pack of images, as `plimsoll data pack` writes it.
#pragma once

#include "base/result.h"
#include "cli/inspect/inspect.h"

namespace plimsoll::cli {

/// What the pack holds: images, formats, the largest, classes. Reads the index and the header of each image.
/// Errors: kBadData where the pack is damaged, and, after its facts are printed, where images in it are.
Status inspect_image_pack(const InspectArguments& arguments);

}  // namespace plimsoll::cli
