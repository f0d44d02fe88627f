#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "images/decode.h"
#include "images/image_info.h"
#include "images/stored_pixels.h"

namespace plimsoll::images {
namespace {

using namespace std::string_view_literals;

// Formats that pictures come in and that are not read, by their first bytes.
std::string_view other_format(Bytes file) {
  if (starts_with(file, 0, "GIF8")) return "a GIF";
  if (starts_with(file, 0, "II*\0"sv) || starts_with(file, 0, "MM\0*"sv)) return "a TIFF";
  if (starts_with(file, 0, "BM")) return "a BMP";
  if (starts_with(file, 4, "ftypavif") || starts_with(file, 4, "ftypavis")) return "an AVIF picture";
  if (starts_with(file, 4, "ftyphei") || starts_with(file, 4, "ftypmif1")) return "a HEIC picture";
  if (starts_with(file, 0, "\0\0\0\fjP  "sv) || starts_with(file, 0, "\xFF\x4F\xFF\x51"))
    return "a JPEG 2000 picture";
  if (starts_with(file, 0, "<svg") || starts_with(file, 0, "<?xml")) return "an SVG or XML file";
  return {};
}

bool is_jpeg(Bytes file) { return starts_with(file, 0, "\xFF\xD8\xFF"); }
bool is_png(Bytes file) { return starts_with(file, 0, "\x89PNG\r\n\x1A\n"); }
bool is_webp(Bytes file) { return starts_with(file, 0, "RIFF") && starts_with(file, 8, "WEBP"); }

Error not_a_picture(Bytes file) {
  if (file.empty()) return bad_picture("the file is empty");
  const std::string_view other = other_format(file);
  if (other.empty()) return bad_picture("this is neither a JPEG nor a PNG nor a WebP");
  return bad_picture(fmt::format("this is {}, which is not read", other), "convert it to PNG or JPEG");
}

}  // namespace

Error bad_picture(std::string what, std::string hint) {
  return {.code = ErrorCode::kBadData, .what = std::move(what), .hint = std::move(hint)};
}

Result<ImageInfo> probe(std::span<const std::byte> file) {
  if (is_jpeg(file)) return probe_jpeg(file);
  if (is_png(file)) return probe_png(file);
  if (is_webp(file)) return probe_webp(file);
  if (is_stored(file)) return probe_stored(file);
  return not_a_picture(file);
}

bool is_picture(std::span<const std::byte> file) {
  return is_jpeg(file) || is_png(file) || is_webp(file) || is_stored(file);
}

Status check_picture(const ImageInfo& info, const Processor& processor) {
  const int64_t pixels = info.width * info.height;
  if (pixels > processor.max_pixels) {
    return bad_picture(fmt::format("the picture has {} x {} = {} pixels, more than max_pixels = {}",
                                   info.width, info.height, grouped(pixels), grouped(processor.max_pixels)),
                       "raise data.images.max_pixels, or make the picture smaller");
  }
  const bool fits = info.width == processor.width && info.height == processor.height;
  if (info.ready && !fits)
    return bad_picture(fmt::format("the stored pixels are for {} x {}, expected {} x {}", info.width,
                                   info.height, processor.width, processor.height),
                       "pack the images again");
  if (info.ready) return Ok{};
  // A picture of one row, resized by its shorter side.
  constexpr int64_t kLongest = 1 << 24;
  const int64_t longer = std::max(info.width, info.height), shorter = std::min(info.width, info.height);
  if (processor.resize == Resize::kShortest && processor.shortest * longer / shorter > kLongest)
    return bad_picture(fmt::format("the picture is {} x {}: resized, its longer side would have {} pixels",
                                   info.width, info.height, processor.shortest * longer / shorter));
  if (processor.resize != Resize::kNone || processor.crop != Crop::kNone) return Ok{};
  const bool turned = processor.orientation == Orientation::kExif && info.orientation > 4;
  const int64_t width = turned ? info.height : info.width;
  const int64_t height = turned ? info.width : info.height;
  if (width == processor.width && height == processor.height) return Ok{};
  return bad_picture(fmt::format("the picture is {} pixels high and {} wide, expected {} x {}", height, width,
                                 processor.height, processor.width),
                     "data.images.resize: exact brings every picture to one size");
}

}  // namespace plimsoll::images
