#include "images/webp_file.h"

#include <fmt/format.h>
#include <webp/decode.h>

#include "images/decode.h"
#include "images/exif.h"

namespace plimsoll::images {
namespace {

constexpr int64_t kFileHeader = 12, kChunkHeader = 8;
constexpr const char* kCutOff = "the WebP ends before its picture does";

int64_t number24(Bytes bytes, int64_t offset) {
  return read_number(bytes, offset, 3, /*little_endian=*/true);
}

// What libwebp says of the frame's header; of an animation as a whole it has nothing to say.
Status look_at_frame(WebpFile& webp) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code =
      WebPGetFeatures(reinterpret_cast<const uint8_t*>(webp.frame.data()), webp.frame.size(), &features);
  if (code == VP8_STATUS_NOT_ENOUGH_DATA) return bad_picture(kCutOff);
  constexpr int kLossy = 1;
  if (code != VP8_STATUS_OK || features.width <= 0 || features.height <= 0)
    return bad_picture("the WebP's header is damaged");
  if (webp.animated && (features.width != webp.frame_width || features.height != webp.frame_height))
    return bad_picture("the WebP's header is damaged: its first frame has another size");
  webp.frame_width = features.width;
  webp.frame_height = features.height;
  webp.lossless = features.format != kLossy;
  webp.has_alpha = webp.has_alpha || features.has_alpha != 0;
  if (webp.animated) return Ok{};
  webp.width = features.width;
  webp.height = features.height;
  return Ok{};
}

// The chunks behind VP8X.
class Chunks {
 public:
  Chunks(Bytes file, WebpFile& webp) : file_(file), webp_(webp) {}

  Status read() {
    constexpr uint32_t kAnimated = 0x02, kExif = 0x08, kAlpha = 0x10, kProfile = 0x20;
    const uint32_t flags = read_number(file_, 20, 1);
    if (!has(file_, 20, 10)) return bad_picture("the WebP's header is cut off");
    webp_.width = number24(file_, 24) + 1;
    webp_.height = number24(file_, 27) + 1;
    webp_.animated = (flags & kAnimated) != 0;
    webp_.has_alpha = (flags & kAlpha) != 0;
    webp_.color_profile = (flags & kProfile) != 0;
    bool needs_frame = webp_.animated, needs_exif = (flags & kExif) != 0;
    for (int64_t at = kFileHeader; needs_frame || needs_exif;) {
      if (!has(file_, at, kChunkHeader)) return bad_picture(kCutOff);
      const int64_t bytes = read_number(file_, at + 4, 4, /*little_endian=*/true);
      if (needs_frame && starts_with(file_, at, "ANMF")) {
        PLIMSOLL_TRY(take_frame(at + kChunkHeader, bytes));
        needs_frame = false;
      }
      if (needs_exif && starts_with(file_, at, "EXIF")) {
        if (!has(file_, at + kChunkHeader, bytes)) return bad_picture(kCutOff);
        take_exif(file_.subspan(plimsoll::at(at + kChunkHeader), plimsoll::at(bytes)));
        needs_exif = false;
      }
      at += kChunkHeader + bytes + bytes % 2;
    }
    return Ok{};
  }

 private:
  Status take_frame(int64_t at, int64_t bytes) {
    constexpr int64_t kPlaceBytes = 16;
    if (bytes < kPlaceBytes) return bad_picture("the WebP's first frame is damaged");
    if (!has(file_, at, bytes)) return bad_picture(kCutOff);
    webp_.left = 2 * number24(file_, at);
    webp_.top = 2 * number24(file_, at + 3);
    webp_.frame_width = number24(file_, at + 6) + 1;
    webp_.frame_height = number24(file_, at + 9) + 1;
    if (webp_.left + webp_.frame_width > webp_.width || webp_.top + webp_.frame_height > webp_.height)
      return bad_picture("the WebP's first frame stands outside of its picture");
    webp_.frame = file_.subspan(plimsoll::at(at + kPlaceBytes), plimsoll::at(bytes - kPlaceBytes));
    return Ok{};
  }
  // Some writers put JPEG's marker before it.
  void take_exif(Bytes exif) {
    using namespace std::string_view_literals;
    constexpr int64_t kMarker = 6;
    webp_.orientation = exif_orientation(starts_with(exif, 0, "Exif\0\0"sv) ? exif.subspan(kMarker) : exif);
  }

  Bytes file_;
  WebpFile& webp_;
};

}  // namespace

Result<WebpFile> read_webp(Bytes file) {
  WebpFile webp{.frame = file};
  if (starts_with(file, kFileHeader, "VP8X")) PLIMSOLL_TRY(Chunks(file, webp).read());
  PLIMSOLL_TRY(look_at_frame(webp));
  return webp;
}

}  // namespace plimsoll::images
