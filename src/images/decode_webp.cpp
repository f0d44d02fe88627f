// WebP through libwebp, whose allocations come from the picture's arena (arena_heap.h). Of an animation the
// first frame is read, on a canvas without colour, as libwebp's own player begins.
#include <webp/decode.h>

#include <algorithm>

#include "images/arena_heap.h"
#include "images/decode.h"
#include "images/on_white.h"
#include "images/resample.h"
#include "images/webp_file.h"

namespace plimsoll::images {
namespace {

Error webp_error(VP8StatusCode code) {
  if (code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED)
    return bad_picture("the WebP ends before its picture does");
  if (code == VP8_STATUS_OUT_OF_MEMORY)
    return bad_picture("the WebP has more Huffman codes than fit 16 MiB", "write it with another encoder");
  return bad_picture("the WebP is damaged");
}

// The frame's pixels into the canvas, of `channels` bytes a pixel.
Status decode_frame(const WebpFile& webp, int64_t channels, std::span<uint8_t> canvas) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return bad_picture("libwebp is of another version");
  const int64_t stride = webp.width * channels;
  const int64_t offset = webp.top * stride + webp.left * channels;
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = canvas.data() + offset,
                          .stride = static_cast<int>(stride),
                          .size = at(webp.height * stride - offset)};
  const VP8StatusCode code =
      WebPDecode(reinterpret_cast<const uint8_t*>(webp.frame.data()), webp.frame.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? Status(Ok{}) : Status(webp_error(code));
}

Status decode_to(Bytes file, const ImageInfo& info, bool white, RowSink& sink, Arena& arena) {
  PLIMSOLL_ASSIGN(const WebpFile webp, read_webp(file));
  if (webp.width != info.width || webp.height != info.height)
    return bad_picture("the WebP's header is damaged");
  const int64_t channels = white ? 4 : 3;
  const std::span<uint8_t> canvas = arena.take<uint8_t>(channels * info.width * info.height + kRowSlack);
  if (webp.frame_width != info.width || webp.frame_height != info.height)
    std::ranges::fill(canvas, uint8_t{0});
  PLIMSOLL_TRY(decode_frame(webp, channels, canvas));
  for (int64_t y = 0; y < info.height; ++y) {
    uint8_t* row = canvas.data() + y * channels * info.width;
    if (white) put_on_white(row, info.width);
    if (!sink.row(y, row)) break;
  }
  return Ok{};
}

}  // namespace

Status decode_webp(Bytes file, const ImageInfo& info, Alpha alpha, RowSink& sink, Arena& arena) {
  const int64_t used = arena.used();
  const ArenaHeap heap(arena);
  Status status = decode_to(file, info, alpha == Alpha::kWhite && info.has_alpha, sink, arena);
  arena.rewind(used);
  return status;
}

}  // namespace plimsoll::images
