// Reads a picture's header, before anything is allocated or decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "images/processor.h"

namespace plimsoll::images {

enum class Format : uint8_t { kJpeg, kPng, kWebp, kStored };

struct ImageInfo {
  int64_t width = 0;  ///< as stored, before the orientation is applied
  int64_t height = 0;
  Format format = Format::kJpeg;
  int orientation = 1;         ///< EXIF's 1 to 8; 1 where there is none or it is damaged
  bool interlaced = false;     ///< rows come out only when the whole picture is decoded
  bool has_alpha = false;      ///< an alpha channel or transparent colours
  bool animated = false;       ///< only the first frame is read
  bool color_profile = false;  ///< an ICC profile, which is ignored
  bool ready = false;          ///< pixels stored as a processor of their size would make them
  int64_t decode_bytes = 0;    ///< scratch memory that decoding takes at most
};

/// Reads the header of a JPEG, PNG or WebP file, whatever its name is. `file` may be its beginning alone, up
/// to where the pixels begin, but for a WebP with EXIF, which stands at its end: that it is cut off is found
/// by `load`. Errors: kBadData for what is no such picture (other formats by name), has no pixels, is
/// damaged, or uses what is refused: 12 bits a sample, lossless, hierarchical or arithmetic JPEG.
Result<ImageInfo> probe(std::span<const std::byte> file);

/// Whether it begins as a file of a format that is read.
bool is_picture(std::span<const std::byte> file);

/// The picture within what the processor takes: its pixels at most max_pixels; exactly the processor's size
/// where nothing resizes or crops. Errors: kBadData.
Status check_picture(const ImageInfo& info, const Processor& processor);

}  // namespace plimsoll::images
