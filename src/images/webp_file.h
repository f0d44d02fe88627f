// Finds in a WebP file what decodes to its first frame, without decoding anything.
//
//   RIFF size WEBP | VP8 or VP8L                                   a picture
//   RIFF size WEBP | VP8X | ICCP? | ALPH? VP8 or VP8L | EXIF?      with alpha, a profile, metadata
//   RIFF size WEBP | VP8X | ANIM | ANMF (place | ALPH? VP8 or VP8L) … | EXIF?
#pragma once

#include "base/result.h"
#include "images/byte_reader.h"

namespace plimsoll::images {

struct WebpFile {
  int64_t width = 0, height = 0;  ///< of the picture; a frame may be smaller
  int64_t left = 0, top = 0;      ///< where the first frame stands in it
  int64_t frame_width = 0, frame_height = 0;
  Bytes frame = {};  ///< what libwebp decodes: the file, or of an animation the frame
  bool animated = false, has_alpha = false, lossless = false, color_profile = false;
  int orientation = 1;  ///< EXIF's
};

/// Errors: kBadData for a damaged header, and where the bytes end before all is known: EXIF stands behind the
/// pixels.
Result<WebpFile> read_webp(Bytes file);

}  // namespace plimsoll::images
