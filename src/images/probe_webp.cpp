#include <algorithm>

#include "base/units.h"
#include "images/decode.h"
#include "images/webp_file.h"

namespace plimsoll::images {
namespace {

// What libwebp allocates for a lossless picture, from above. A picture may have Huffman codes for each tile
// of 4 x 4 pixels, 20 kB each; libwebp's encoder writes some hundred at most. Pictures with more than kCodes
// takes are refused when they are decoded.
int64_t lossless_bytes(int64_t width, int64_t height) {
  constexpr int64_t kCodes = int64_t{16} << 20, kTileCodes = 20 << 10;
  constexpr int64_t kState = 256 << 10;  // decoder, codes and colour caches of the transforms' pictures
  constexpr int64_t kRowsAtOnce = 16;
  const int64_t tiles = ceil_div(width, 4) * ceil_div(height, 4);
  const int64_t pixels = 4 * (width * height + (kRowsAtOnce + 1) * width);
  return kState + std::min(kCodes, tiles * kTileCodes) + arena_piece(pixels) + 3 * arena_piece(8 * tiles);
}

// The same for a lossy one: rows of macroblocks, and the planes of its alpha channel, which may be a lossless
// picture.
int64_t lossy_bytes(int64_t width, int64_t height, bool has_alpha) {
  constexpr int64_t kState = 96 << 10, kMacroblock = 3 << 10;
  const int64_t bytes = kState + kMacroblock * (ceil_div(width, 16) + 1) + arena_piece(4 * width);
  return has_alpha ? bytes + 2 * arena_piece(width * height) + lossless_bytes(width, height) : bytes;
}

}  // namespace

Result<ImageInfo> probe_webp(Bytes file) {
  PLIMSOLL_ASSIGN(const WebpFile webp, read_webp(file));
  ImageInfo info{.width = webp.width,
                 .height = webp.height,
                 .format = Format::kWebp,
                 .orientation = webp.orientation,
                 .has_alpha = webp.has_alpha,
                 .animated = webp.animated,
                 .color_profile = webp.color_profile};
  const int64_t width = webp.frame_width, height = webp.frame_height;
  info.decode_bytes =
      arena_piece(4 * info.width * info.height + kArenaAlignment) +
      (webp.lossless ? lossless_bytes(width, height) : lossy_bytes(width, height, webp.has_alpha));
  return info;
}

}  // namespace plimsoll::images
