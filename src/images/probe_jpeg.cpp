#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "images/decode.h"
#include "images/exif.h"

namespace plimsoll::images {
namespace {

// The frame header (SOF) of a JPEG.
struct Frame {
  struct Component {
    int64_t h = 1, v = 1;  // sampling factors
  };
  int64_t width = 0, height = 0;
  int marker = 0;
  int num_components = 0;
  std::array<Component, 4> components = {};
  int64_t max_h = 1, max_v = 1;

  [[nodiscard]] bool progressive() const { return marker == 0xC2; }
};

bool is_frame(int marker) {
  constexpr int kHuffmanTables = 0xC4, kReserved = 0xC8, kArithmeticTables = 0xCC;
  return marker >= 0xC0 && marker <= 0xCF && marker != kHuffmanTables && marker != kReserved &&
         marker != kArithmeticTables;
}

Status check_process(int marker, uint32_t precision) {
  constexpr std::string_view kHint = "convert it, for instance with Pillow or djpeg";
  if (marker >= 0xC9)
    return bad_picture("the JPEG is arithmetically coded, which is not read", std::string(kHint));
  if (marker == 0xC3 || marker == 0xC7)
    return bad_picture("the JPEG is lossless, which is not read", std::string(kHint));
  if (marker > 0xC2) return bad_picture("the JPEG is hierarchical, which is not read", std::string(kHint));
  if (precision != 8) {
    return bad_picture(fmt::format("the JPEG has {} bits a sample, only 8 are read", precision),
                       std::string(kHint));
  }
  return Ok{};
}

// `body` is the segment behind its length.
Result<Frame> parse_frame(int marker, Bytes body) {
  PLIMSOLL_TRY(check_process(marker, read_number(body, 0, 1)));
  Frame frame{.width = read_number(body, 3, 2), .height = read_number(body, 1, 2), .marker = marker};
  frame.num_components = static_cast<int>(read_number(body, 5, 1));
  const int n = frame.num_components;
  if (!has(body, 6, 3 * n)) return bad_picture("the JPEG's frame header is cut off");
  if (frame.width == 0 || frame.height == 0) return bad_picture("the JPEG has no pixels");
  if (n != 1 && n != 3 && n != 4)
    return bad_picture(fmt::format("the JPEG has {} components, expected 1, 3 or 4", n));
  for (int i = 0; i < n; ++i) {
    const uint32_t factors = read_number(body, 6 + 3 * i + 1, 1);
    Frame::Component& component = frame.components[at(i)];
    component = {factors >> 4, factors & 15};
    if (component.h < 1 || component.h > 4 || component.v < 1 || component.v > 4)
      return bad_picture("the JPEG's sampling factors are damaged");
    frame.max_h = std::max(frame.max_h, component.h);
    frame.max_v = std::max(frame.max_v, component.v);
  }
  return frame;
}

// What libjpeg allocates for a picture, from above: rows of samples for upsampling and colour conversion; for
// several scans the coefficients of the whole picture; tables and small structures.
int64_t jpeg_bytes(const Frame& frame, bool several_scans) {
  constexpr int64_t kBlock = 64 * 2;     // DCT coefficients
  constexpr int64_t kRowGroups = 8 + 2;  // of a row of blocks, with those above and below
  constexpr int64_t kTables = 64 << 10;  // Huffman tables (8 of 1.5 kB), colour tables, controllers
  constexpr int64_t kPointer = 8;
  int64_t bytes = kTables;
  const int64_t mcus_x = ceil_div(frame.width, 8 * frame.max_h);
  const int64_t mcus_y = ceil_div(frame.height, 8 * frame.max_v);
  for (int i = 0; i < frame.num_components; ++i) {
    const auto [h, v] = frame.components[at(i)];
    const int64_t row_bytes = round_up(mcus_x * h * 8, 64);
    bytes += arena_piece(v * kRowGroups * (row_bytes + 4 * kPointer));
    bytes += arena_piece(frame.max_v * (round_up(frame.width + frame.max_h, 64) + kPointer));
    if (several_scans)
      bytes += arena_piece(mcus_y * v * kPointer) + arena_piece(mcus_y * v * mcus_x * h * kBlock);
  }
  return bytes + arena_piece(4 * frame.width) +
         arena_piece(3 * frame.width);  // a row of CMYK, and one of RGB
}

// The segments of a JPEG before its first scan.
class Header {
 public:
  explicit Header(Bytes file) : file_(file) {}

  Result<ImageInfo> read() {
    constexpr int kScan = 0xDA, kEnd = 0xD9;
    for (int64_t at = 2;;) {
      // Any number of 0xFF may stand before a marker.
      while (read_number(file_, at, 1) == 0xFF && read_number(file_, at + 1, 1) == 0xFF) ++at;
      if (!has(file_, at, 4)) return bad_picture("the JPEG ends within its header");
      if (read_number(file_, at, 1) != 0xFF) return bad_picture("the JPEG's header is damaged");
      const int marker = static_cast<int>(read_number(file_, at + 1, 1));
      const int64_t length = read_number(file_, at + 2, 2);
      if (marker == kEnd) return bad_picture("the JPEG holds no picture");
      if (length < 2 || !has(file_, at + 2, length)) return bad_picture("the JPEG ends within its header");
      const Bytes body = file_.subspan(plimsoll::at(at + 4), plimsoll::at(length - 2));
      if (marker == kScan) return finish(body);
      PLIMSOLL_TRY(segment(marker, body));
      at += 2 + length;
    }
  }

 private:
  Status segment(int marker, Bytes body) {
    using namespace std::string_view_literals;
    constexpr int kApp1 = 0xE1, kApp2 = 0xE2;
    if (is_frame(marker)) {
      if (frame_.num_components != 0) return bad_picture("the JPEG has two frame headers");
      PLIMSOLL_ASSIGN(frame_, parse_frame(marker, body));
    }
    if (marker == kApp1 && starts_with(body, 0, "Exif\0"sv) && body.size() >= 6 && info_.orientation == 1)
      info_.orientation = exif_orientation(body.subspan(6));
    if (marker == kApp2 && starts_with(body, 0, "ICC_PROFILE\0"sv)) info_.color_profile = true;
    return Ok{};
  }

  Result<ImageInfo> finish(Bytes scan) {
    if (frame_.num_components == 0) return bad_picture("the JPEG has no frame header");
    const bool several_scans =
        frame_.progressive() || static_cast<int>(read_number(scan, 0, 1)) < frame_.num_components;
    info_.format = Format::kJpeg;
    info_.width = frame_.width;
    info_.height = frame_.height;
    info_.decode_bytes = jpeg_bytes(frame_, several_scans);
    return info_;
  }

  Bytes file_;
  Frame frame_;
  ImageInfo info_;
};

}  // namespace

Result<ImageInfo> probe_jpeg(Bytes file) { return Header(file).read(); }

}  // namespace plimsoll::images
