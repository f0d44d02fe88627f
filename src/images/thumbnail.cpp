#include "images/thumbnail.h"

#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "images/decode.h"
#include "images/load.h"

namespace plimsoll::images {
namespace {

Processor square_of(const ImageInfo& info, int64_t side) {
  Processor p;
  side = std::min({side, info.width, info.height});
  p.height = p.width = p.shortest = side;
  p.resize = Resize::kShortest;
  p.crop = Crop::kCenter;
  p.alpha = Alpha::kWhite;
  return p;
}

/// u8 [side, side, 3] as a file.
Result<std::string> encode_png(std::span<const uint8_t> pixels, int64_t side) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(SPNG_CTX_ENCODER),
                                                                    spng_ctx_free);
  spng_ihdr header = {};
  header.width = header.height = static_cast<uint32_t>(side);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_ihdr(context.get(), &header);
  int status =
      spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  const std::unique_ptr<void, decltype(&std::free)> bytes(
      status == 0 ? spng_get_png_buffer(context.get(), &size, &status) : nullptr, std::free);
  if (!bytes) return bad_picture(fmt::format("a thumbnail was not encoded: {}", spng_strerror(status)));
  return std::string(static_cast<const char*>(bytes.get()), size);
}

}  // namespace

Result<std::string> thumbnail_png(std::span<const std::byte> file, int64_t side) {
  PLIMSOLL_ASSIGN(const ImageInfo info, probe(file));
  const Processor processor = square_of(info, side);
  PLIMSOLL_TRY(check_picture(info, processor));
  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(info, processor)));
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * processor.height * processor.width));
  PLIMSOLL_TRY(load(file, processor, nullptr, pixels, scratch));
  return encode_png(pixels, processor.height);
}

}  // namespace plimsoll::images
