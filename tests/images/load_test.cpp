// Recorded pictures of every kind: their pixels are Pillow's, in the memory that was planned, and what is
// damaged is an error.
#include "images/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/pictures.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;

class RecordedPicture : public testing::TestWithParam<std::string> {};

std::vector<uint8_t> recorded_pixels(const std::string& name, int64_t offset, int64_t count) {
  const std::string all = picture(name + ".rgb");
  EXPECT_GE(static_cast<int64_t>(all.size()), offset + count);
  return {all.begin() + offset, all.begin() + offset + count};
}

constexpr int64_t kWholeBytes = kPictureHeight * kPictureWidth * 3;

TEST_P(RecordedPicture, HasPillowsPixels) {
  const std::string file = picture(GetParam());
  const auto pixels = load_picture(file, unchanged(file));
  ASSERT_TRUE(pixels.ok()) << pixels.error().message();
  EXPECT_EQ(*pixels, recorded_pixels(GetParam(), 0, kWholeBytes));
}

TEST_P(RecordedPicture, IsResizedAsPillowDoes) {
  const auto pixels = load_picture(picture(GetParam()), to_size(kSmallHeight, kSmallWidth));
  ASSERT_TRUE(pixels.ok()) << pixels.error().message();
  EXPECT_EQ(*pixels, recorded_pixels(GetParam(), kWholeBytes, kSmallHeight * kSmallWidth * 3));
}

// A crop of the resized picture is what the whole resized picture has there.
TEST_P(RecordedPicture, CropsWhatItWouldResize) {
  Processor whole = to_size(12, 30);
  const auto resized = load_picture(picture(GetParam()), whole);
  ASSERT_TRUE(resized.ok());
  Processor crop = whole;
  crop.crop = Crop::kCenter;
  crop.height = 5;
  crop.width = 16;
  const auto cropped = load_picture(picture(GetParam()), crop);
  ASSERT_TRUE(cropped.ok());
  for (int64_t y = 0; y < crop.height; ++y)
    for (int64_t i = 0; i < 3 * crop.width; ++i)
      ASSERT_EQ((*cropped)[at(y * 3 * crop.width + i)], (*resized)[at((y + 3) * 3 * whole.width + i + 3 * 7)])
          << y << " " << i;
}

// A file that ends anywhere is an error, or has all its pixels.
TEST_P(RecordedPicture, CutOffAnywhereIsAnError) {
  const std::string file = picture(GetParam());
  const auto whole = load_picture(file, unchanged(file));
  int64_t errors = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    const auto pixels = load_picture(file.substr(0, size), unchanged(file));
    if (!pixels.ok()) {
      EXPECT_EQ(pixels.error().code, ErrorCode::kBadData);
      ++errors;
    } else {
      EXPECT_EQ(*pixels, *whole) << size;
    }
  }
  // What may be missing: a JPEG's end marker, a PNG's checksums behind its pixels, an animation's other
  // frames.
  const size_t pixels_end = file.starts_with("\x89PNG") ? file.rfind("IDAT")
                            : file.find("ANMF") != std::string::npos
                                ? file.find("ANMF", file.find("ANMF") + 4)
                                : file.size() - 4;
  EXPECT_GE(errors, static_cast<int64_t>(pixels_end));
}

// Pictures before it leave nothing behind, damaged ones neither.
TEST_P(RecordedPicture, DoesNotDependOnTheOneBefore) {
  const std::string file = picture(GetParam());
  const auto expected = load_picture(file, unchanged(file));
  for (const std::string& other : picture_names()) {
    std::string damaged = picture(other);
    for (size_t i = damaged.size() / 2; i < damaged.size(); i += 7)
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    (void)load_picture(damaged, unchanged()).ok();
    ASSERT_EQ(*load_picture(file, unchanged(file)), *expected) << other;
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pictures, RecordedPicture, testing::ValuesIn(picture_names()), test_name);

TEST(Load, TransparencyIsDroppedOrPutOnWhite) {
  const std::string file = picture("rgba.png");
  Processor processor = unchanged();
  const std::vector<uint8_t> dropped = load_picture(file, processor).value();
  processor.alpha = Alpha::kWhite;
  const std::vector<uint8_t> white = load_picture(file, processor).value();
  for (int64_t y = 0; y < kPictureHeight; ++y) {
    for (int64_t x = 0; x < kPictureWidth; ++x) {
      const int64_t alpha = (x * 12 + y * 7) % 256;  // as make.py
      for (int64_t c = 0; c < 3; ++c) {
        const size_t i = at(3 * (y * kPictureWidth + x) + c);
        EXPECT_EQ(white[i], (255 * (255 - alpha) + dropped[i] * alpha + 127) / 255);
      }
    }
  }
}

TEST(Load, ATransparentWebpIsPutOnWhite) {
  Processor processor = unchanged();
  const std::string file = picture("lossless_alpha.webp");
  processor.alpha = Alpha::kWhite;
  EXPECT_EQ(*load_picture(file, processor), *load_picture(picture("rgba.png"), processor));
}

TEST(Load, OrientationCanBeIgnored) {
  Processor processor = unchanged(kPictureHeight, kPictureWidth);
  processor.orientation = Orientation::kIgnore;
  const auto plain = load_picture(picture("turned6.png"), unchanged(kPictureWidth, kPictureHeight));
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_EQ(*load_picture(picture("turned6.png"), processor), *load_picture(picture("rgb.png"), unchanged()));
}

TEST(Load, SmallerPicturesStandOnBlack) {
  Processor processor = unchanged(kPictureHeight + 3, kPictureWidth + 5);
  processor.crop = Crop::kCenter;
  const std::vector<uint8_t> picture_pixels = load_picture(picture("rgb.png"), unchanged()).value();
  const std::vector<uint8_t> pixels = load_picture(picture("rgb.png"), processor).value();
  for (int64_t y = 0; y < processor.height; ++y) {
    for (int64_t x = 0; x < processor.width; ++x) {
      const int64_t from_y = y - 2, from_x = x - 3;  // odd margins: the larger part stands before it
      const bool inside = from_y >= 0 && from_y < kPictureHeight && from_x >= 0 && from_x < kPictureWidth;
      const size_t i = at(3 * (y * processor.width + x));
      EXPECT_EQ(pixels[i], inside ? picture_pixels[at(3 * (from_y * kPictureWidth + from_x))] : 0)
          << x << " " << y;
    }
  }
}

TEST(Load, LessScratchThanItTakesIsAnError) {
  const std::string file = picture("progressive.jpg");
  const ImageInfo info = probe(bytes_of(file)).value();
  std::vector<std::byte> scratch(at(scratch_bytes(info, unchanged())) - 1);
  std::vector<uint8_t> pixels(at(kWholeBytes));
  const Status status = load(bytes_of(file), unchanged(), nullptr, pixels, scratch);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().what, HasSubstr("needs more memory"));
}

// A marker without a length, and a comment that begins in what only the probe takes for its segment: the
// probe and libjpeg find different frame headers.
TEST(Load, AnotherFrameHeaderThanTheProbesIsAnError) {
  using namespace std::string_literals;
  std::string file = picture("usual.jpg");
  constexpr size_t kFrameBytes = 19, kHeightAt = 5;
  const size_t at = file.find("\xFF\xC0\x00\x11"s);
  ASSERT_NE(at, file.npos);
  const std::string frame = file.substr(at, kFrameBytes);
  std::string smaller = frame;
  smaller.replace(kHeightAt, 4, "\x00\x08\x00\x08"s);
  file.erase(at, kFrameBytes);
  file.insert(2, "\xFF\xD0\x00\x19"s + smaller + "\xFF\xFE\x00\x15"s + frame);
  ASSERT_EQ(probe(bytes_of(file)).value().width, kPictureWidth);
  const auto pixels = load_picture(file, unchanged());
  ASSERT_FALSE(pixels.ok());
  EXPECT_EQ(pixels.error().what, "the JPEG's header is damaged");
}

TEST(Load, PicturesOfAnotherSizeAreErrorsWhereNothingResizes) {
  const auto pixels = load_picture(picture("rgb.png"), unchanged(5, 5));
  ASSERT_FALSE(pixels.ok());
  EXPECT_THAT(pixels.error().what, HasSubstr("17 pixels high and 23 wide, expected 5 x 5"));
}

}  // namespace
}  // namespace plimsoll::images
