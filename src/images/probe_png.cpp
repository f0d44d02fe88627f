#include <fmt/format.h>

#include "images/decode.h"
#include "images/exif.h"
#include "images/png_chunks.h"

namespace plimsoll::images {
namespace {

enum ColorType : uint32_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };

int64_t channels(uint32_t color_type) {
  switch (color_type) {
    case kGrey:
    case kPalette:
      return 1;
    case kGreyAlpha:
      return 2;
    case kRgb:
      return 3;
    default:
      return 4;
  }
}

Status check_kind(uint32_t color_type, uint32_t depth) {
  const bool known = color_type == kGrey || color_type == kRgb || color_type == kPalette ||
                     color_type == kGreyAlpha || color_type == kRgba;
  const bool small = depth == 1 || depth == 2 || depth == 4;
  const bool fits = depth == 8 || (depth == 16 && color_type != kPalette) ||
                    (small && (color_type == kGrey || color_type == kPalette));
  if (known && fits) return Ok{};
  return bad_picture(
      fmt::format("the PNG's header is damaged: colour type {} with {} bits", color_type, depth));
}

// What libspng and zlib allocate, from above; rows of RGBA; the whole picture where rows come out in passes.
int64_t png_bytes(const ImageInfo& info, int64_t bits_per_pixel) {
  constexpr int64_t kState = 96 << 10;  // libspng's context and read buffer, zlib's state and window
  const int64_t scanline = (info.width * bits_per_pixel + 7) / 8 + 1 + 64;
  const int64_t row = info.width * 4;
  return kState + 2 * arena_piece(scanline) + 3 * arena_piece(row) +
         (info.interlaced ? arena_piece(row * info.height) : 0);
}

}  // namespace

Result<ImageInfo> probe_png(Bytes file) {
  PngChunks chunks(file);
  std::optional<PngChunk> chunk = chunks.next();
  constexpr int64_t kHeaderBytes = 13;
  if (!chunk || chunk->type != "IHDR" || static_cast<int64_t>(chunk->data.size()) != kHeaderBytes)
    return bad_picture("the PNG's header is damaged or cut off");
  const Bytes header = chunk->data;
  ImageInfo info{
      .width = read_number(header, 0, 4), .height = read_number(header, 4, 4), .format = Format::kPng};
  const uint32_t depth = read_number(header, 8, 1), color_type = read_number(header, 9, 1);
  PLIMSOLL_TRY(check_kind(color_type, depth));
  if (info.width == 0 || info.height == 0) return bad_picture("the PNG has no pixels");
  constexpr int64_t kMostPixels = int64_t{1} << 32;
  if (info.width > kMostPixels / info.height)
    return bad_picture(
        fmt::format("the picture has {} x {} pixels, more than any limit allows", info.width, info.height));
  info.interlaced = read_number(header, 12, 1) != 0;
  info.has_alpha = color_type == kGreyAlpha || color_type == kRgba;
  while ((chunk = chunks.next()) && chunk->type != "IDAT") {
    if (chunk->type == "tRNS") info.has_alpha = true;
    if (chunk->type == "acTL") info.animated = true;
    if (chunk->type == "iCCP") info.color_profile = true;
    if (chunk->type == "eXIf") info.orientation = exif_orientation(chunk->data);
  }
  // The beginning of a file is enough, as far as its pixels begin.
  if (!chunk && !starts_with(chunks.rest(), 4, "IDAT")) return bad_picture("the PNG ends before its pixels");
  info.decode_bytes = png_bytes(info, channels(color_type) * depth);
  return info;
}

}  // namespace plimsoll::images
