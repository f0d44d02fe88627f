// What of a JPEG is needed has the pixels of the whole picture, whichever box that is and however the file is
// sampled and ordered.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// jpeglib.h wants size_t and FILE.
#include <jpeglib.h>

#include "images/decode.h"
#include "images/pictures.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

constexpr int kJpegWidth = 211, kJpegHeight = 173;

struct JpegKind {
  int across = 1, down = 1;  ///< samples of brightness for each of colour
  bool grey = false, progressive = false;
  unsigned restart_rows = 0;
};

/// A file of noise on waves.
std::vector<std::byte> encoded(const JpegKind& kind) {
  std::mt19937 random(5);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = kJpegWidth;
  info.image_height = kJpegHeight;
  info.input_components = kind.grey ? 1 : 3;
  info.in_color_space = kind.grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  info.comp_info[0].h_samp_factor = kind.across;
  info.comp_info[0].v_samp_factor = kind.down;
  if (kind.progressive) jpeg_simple_progression(&info);
  info.restart_in_rows = static_cast<int>(kind.restart_rows);
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(static_cast<size_t>(kJpegWidth * info.input_components));
  for (int y = 0; y < kJpegHeight; ++y) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<JSAMPLE>(((i * 7 + static_cast<size_t>(y) * 3) % 192 + random() % 64));
    JSAMPLE* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> file(begin, begin + size);
  std::free(bytes);  // jpeg_mem_dest took it from malloc
  return file;
}

/// Keeps the needed pixels.
class KeptBox : public RowSink {
 public:
  explicit KeptBox(const Needed& needed) : needed_(needed) {}
  [[nodiscard]] Needed needed(const ImageInfo& /*info*/) const override { return needed_; }
  bool row(int64_t y, uint8_t* rgb) override {
    if (y >= needed_.first_row && y < needed_.end_row)
      pixels_.insert(pixels_.end(), rgb + 3 * needed_.first_pixel, rgb + 3 * needed_.end_pixel);
    return true;
  }
  [[nodiscard]] const std::vector<uint8_t>& pixels() const { return pixels_; }

 private:
  const Needed needed_;
  std::vector<uint8_t> pixels_;
};

std::vector<uint8_t> decoded(const std::vector<std::byte>& file, const Needed& needed) {
  const Result<ImageInfo> info = probe_jpeg(file);
  EXPECT_TRUE(info) << info.error().message();
  std::vector<std::byte> memory(static_cast<size_t>(info->decode_bytes + kArenaAlignment));
  Arena arena(memory);
  KeptBox box(needed);
  const Status status = decode_jpeg(file, *info, box, arena);
  EXPECT_TRUE(status) << status.error().message();
  return box.pixels();
}

std::vector<uint8_t> cut_out(const std::vector<uint8_t>& whole, const Needed& box) {
  std::vector<uint8_t> pixels;
  for (int64_t y = box.first_row; y < box.end_row; ++y) {
    const auto row = whole.begin() + 3 * kJpegWidth * y;
    pixels.insert(pixels.end(), row + 3 * box.first_pixel, row + 3 * box.end_pixel);
  }
  return pixels;
}

TEST(DecodeJpeg, ABoxHasThePixelsOfTheWholePicture) {
  std::mt19937 random(11);
  const auto range = [&](int64_t size) {
    const auto one = static_cast<int64_t>(random() % static_cast<unsigned>(size)),
               other = static_cast<int64_t>(random() % static_cast<unsigned>(size));
    return std::pair{std::min(one, other), std::max(one, other) + 1};
  };
  std::vector<JpegKind> kinds;
  for (const auto& [across, down] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {1, 4}})
    for (const bool progressive : {false, true})
      kinds.push_back({.across = across, .down = down, .progressive = progressive});
  kinds.push_back({.grey = true});
  kinds.push_back({.across = 2, .down = 2, .restart_rows = 1});
  for (const JpegKind& kind : kinds) {
    const std::vector<std::byte> file = encoded(kind);
    const std::vector<uint8_t> whole = decoded(file, {.end_row = kJpegHeight, .end_pixel = kJpegWidth});
    ASSERT_EQ(whole.size(), static_cast<size_t>(3 * kJpegWidth * kJpegHeight));
    for (int trial = 0; trial < 60; ++trial) {
      const auto [top, bottom] = range(kJpegHeight);
      const auto [left, right] = range(kJpegWidth);
      const Needed box{top, bottom, left, right};
      ASSERT_EQ(decoded(file, box), cut_out(whole, box))
          << kind.across << "x" << kind.down << (kind.progressive ? " progressive" : "") << " rows " << top
          << " to " << bottom << ", pixels " << left << " to " << right;
    }
  }
}

}  // namespace
}  // namespace plimsoll::images
