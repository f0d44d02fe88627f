// What of a JPEG is needed has the pixels of the whole picture, whichever box that is and however the file is
// sampled and ordered.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "images/arena.h"
#include "images/decode.h"
#include "images/jpegs.h"

namespace plimsoll::images {
namespace {

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

Needed whole_of(const JpegKind& kind) { return {.end_row = kind.height, .end_pixel = kind.width}; }

Result<std::vector<uint8_t>> decode_box(const std::vector<std::byte>& file, const Needed& needed) {
  PLIMSOLL_ASSIGN(const ImageInfo info, probe_jpeg(file));
  std::vector<std::byte> memory(static_cast<size_t>(info.decode_bytes + kArenaAlignment));
  Arena arena(memory);
  KeptBox box(needed);
  PLIMSOLL_TRY(decode_jpeg(file, info, box, arena));
  return box.pixels();
}

std::vector<uint8_t> cut_out(const std::vector<uint8_t>& whole, int64_t width, const Needed& box) {
  std::vector<uint8_t> pixels;
  for (int64_t y = box.first_row; y < box.end_row; ++y) {
    const auto row = whole.begin() + 3 * width * y;
    pixels.insert(pixels.end(), row + 3 * box.first_pixel, row + 3 * box.end_pixel);
  }
  return pixels;
}

/// A box within a picture of that size.
Needed drawn_box(std::mt19937& random, int width, int height) {
  const auto range = [&](int size) {
    const auto one = static_cast<int64_t>(random() % static_cast<unsigned>(size)),
               other = static_cast<int64_t>(random() % static_cast<unsigned>(size));
    return std::pair{std::min(one, other), std::max(one, other) + 1};
  };
  const auto [top, bottom] = range(height);
  const auto [left, right] = range(width);
  return {top, bottom, left, right};
}

std::string shown(const Needed& box) {
  return "rows " + std::to_string(box.first_row) + " to " + std::to_string(box.end_row) + ", pixels " +
         std::to_string(box.first_pixel) + " to " + std::to_string(box.end_pixel);
}

void expect_boxes_of_the_whole(const JpegKind& kind, int boxes) {
  const std::vector<std::byte> file = encoded(kind);
  const auto whole = decode_box(file, whole_of(kind));
  ASSERT_TRUE(whole) << kind.name << ": " << whole.error().message();
  ASSERT_EQ(whole->size(), static_cast<size_t>(3 * kind.width * kind.height));
  std::mt19937 random(11);
  for (int i = 0; i < boxes; ++i) {
    const Needed box = drawn_box(random, kind.width, kind.height);
    const auto pixels = decode_box(file, box);
    ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().message();
    ASSERT_EQ(*pixels, cut_out(*whole, kind.width, box)) << kind.name << ", " << shown(box);
  }
}

const std::vector<JpegKind>& sampled_kinds() {
  static const std::vector<JpegKind> all = {
      {"4:4:4", {{1, 1}, {1, 1}, {1, 1}}},
      {"4:2:2", {{2, 1}, {1, 1}, {1, 1}}},
      {"4:2:0", {{2, 2}, {1, 1}, {1, 1}}},
      {"4:4:0", {{1, 2}, {1, 1}, {1, 1}}},
      {"4:1:1", {{4, 1}, {1, 1}, {1, 1}}},
      {"4:1:0", {{4, 2}, {1, 1}, {1, 1}}},
      {"a quarter of the rows", {{1, 4}, {1, 1}, {1, 1}}},
      {"a third of the columns", {{3, 1}, {1, 1}, {1, 1}}},
      {"each colour otherwise", {{2, 2}, {1, 2}, {2, 1}}},
      {"colours finer than brightness", {{1, 1}, {2, 2}, {2, 2}}},
  };
  return all;
}

TEST(DecodeJpeg, ABoxHasThePixelsOfTheWholePicture) {
  for (const Scans scans : {Scans::kOne, Scans::kProgressive, Scans::kOneOfEachComponent})
    for (JpegKind kind : sampled_kinds()) {
      kind.name += ", scans " + std::to_string(static_cast<int>(scans));
      kind.scans = scans;
      expect_boxes_of_the_whole(kind, 40);
    }
}

TEST(DecodeJpeg, ABoxOfOtherColoursOrWithRestartsHasThePixelsOfTheWholePicture) {
  const std::vector<std::array<int, 2>> four = {{2, 2}, {1, 1}, {1, 1}, {2, 2}},
                                        halved = {{2, 2}, {1, 1}, {1, 1}};
  for (const Scans scans : {Scans::kOne, Scans::kProgressive}) {
    expect_boxes_of_the_whole({"grey", {{1, 1}}, scans, JCS_GRAYSCALE}, 40);
    expect_boxes_of_the_whole({"grey that says it is sampled", {{2, 2}}, scans, JCS_GRAYSCALE}, 40);
    expect_boxes_of_the_whole({"RGB", {{1, 1}, {1, 1}, {1, 1}}, scans, JCS_RGB}, 40);
    expect_boxes_of_the_whole({"CMYK", {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, scans, JCS_CMYK}, 40);
    expect_boxes_of_the_whole({"YCCK", four, scans, JCS_YCCK}, 40);
    for (const unsigned blocks : {1U, 5U, 14U, 100U})
      expect_boxes_of_the_whole({"restarts", halved, scans, JCS_YCbCr, blocks}, 20);
  }
}

/// libjpeg estimates coefficients that no scan has from blocks around theirs.
TEST(DecodeJpeg, ABoxOfAnImprecisePictureHasThePixelsOfTheWholePicture) {
  for (JpegKind kind : sampled_kinds()) {
    kind.name += ", imprecise";
    kind.scans = Scans::kImprecise;
    expect_boxes_of_the_whole(kind, 40);
  }
}

TEST(DecodeJpeg, ABoxOfASmallPictureHasThePixelsOfTheWholePicture) {
  std::mt19937 random(17);
  for (int i = 0; i < 120; ++i) {
    JpegKind kind = sampled_kinds()[static_cast<size_t>(i) % sampled_kinds().size()];
    kind.scans = i % 3 == 0 ? Scans::kProgressive : Scans::kOne;
    kind.width = 1 + static_cast<int>(random() % 70);
    kind.height = 1 + static_cast<int>(random() % 70);
    kind.name += ", " + std::to_string(kind.width) + " x " + std::to_string(kind.height);
    expect_boxes_of_the_whole(kind, 8);
  }
}

/// What libjpeg makes of damaged data is the same where it leaves pixels out.
TEST(DecodeJpeg, ABoxOfADamagedPictureHasThePixelsOfTheWholePicture) {
  std::mt19937 random(23);
  int decoded = 0;
  for (int i = 0; i < 120; ++i) {
    JpegKind kind = sampled_kinds()[static_cast<size_t>(i) % sampled_kinds().size()];
    kind.scans = i % 3 == 0 ? Scans::kProgressive : Scans::kOne;
    kind.restart_blocks = i % 2 == 0 ? 7 : 0;
    std::vector<std::byte> file = encoded(kind);
    for (int damages = 0; damages < 1 + i % 4; ++damages)
      file[file.size() / 4 + random() % (file.size() / 2)] = static_cast<std::byte>(random());
    const auto whole = decode_box(file, whole_of(kind));
    if (!whole) continue;
    ++decoded;
    for (int trial = 0; trial < 6; ++trial) {
      const Needed box = drawn_box(random, kind.width, kind.height);
      const auto pixels = decode_box(file, box);
      ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().message();
      ASSERT_EQ(*pixels, cut_out(*whole, kind.width, box))
          << kind.name << ", damage " << i << ", " << shown(box);
    }
  }
  EXPECT_GT(decoded, 80);
}

/// Cut off behind the box, or within it; with a thumbnail in front, which has an end of its own.
TEST(DecodeJpeg, APictureThatIsCutOffIsRefusedWhicheverBoxIsNeeded) {
  for (const Scans scans : {Scans::kOne, Scans::kProgressive})
    for (const bool with_thumbnail : {false, true}) {
      std::vector<std::byte> file = encoded({.name = "cut off", .scans = scans});
      const auto segment = {0xFF, 0xE5, 0x00, 0x06, 0xFF, 0xD8, 0xFF, 0xD9};
      if (with_thumbnail)
        std::ranges::transform(segment, std::inserter(file, file.begin() + 2),
                               [](int i) { return static_cast<std::byte>(i); });
      ASSERT_TRUE(decode_box(file, {0, 8, 0, 8}));
      file.resize(file.size() * 2 / 3);
      for (const Needed& box : {Needed{0, 8, 0, 8}, Needed{0, 173, 0, 211}, Needed{160, 173, 0, 211}}) {
        const auto pixels = decode_box(file, box);
        ASSERT_FALSE(pixels) << shown(box);
        EXPECT_NE(pixels.error().message().find("ends before its picture does"), std::string::npos);
      }
    }
}

}  // namespace
}  // namespace plimsoll::images
