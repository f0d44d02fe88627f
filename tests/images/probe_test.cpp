// Headers of pictures: what they say, and what is refused by name before anything is decoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/image_info.h"
#include "images/pictures.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

ImageInfo info_of(const std::string& name) { return probe(bytes_of(picture(name))).value(); }

std::string probe_refusal(const std::string& file) {
  const auto info = probe(bytes_of(file));
  return info.ok() ? "" : info.error().what;
}

/// The file with the marker of its frame header exchanged, or another byte of that segment.
std::string with_frame(std::string file, size_t offset, char value) {
  const size_t frame = file.find("\xFF\xC0"s);
  file[frame + offset] = value;
  return file;
}

TEST(Probe, ReadsWhatHeadersSay) {
  const ImageInfo jpeg = info_of("turned6.jpg");
  EXPECT_EQ(jpeg.format, Format::kJpeg);
  EXPECT_EQ(jpeg.width, kPictureWidth);
  EXPECT_EQ(jpeg.height, kPictureHeight);
  EXPECT_EQ(jpeg.orientation, 6);
  EXPECT_EQ(info_of("turned6.png").orientation, 6);
  EXPECT_EQ(info_of("turned6.png").format, Format::kPng);
  EXPECT_TRUE(info_of("interlaced.png").interlaced);
  EXPECT_TRUE(info_of("animated.png").animated);
  EXPECT_FALSE(info_of("rgb.png").animated);
  EXPECT_TRUE(info_of("rgba.png").has_alpha);
  EXPECT_TRUE(info_of("palette.png").has_alpha);
  EXPECT_FALSE(info_of("rgb.png").has_alpha);
  EXPECT_EQ(info_of("turned6.webp").format, Format::kWebp);
  EXPECT_EQ(info_of("turned6.webp").orientation, 6);
  EXPECT_EQ(info_of("lossless.webp").width, kPictureWidth);
  EXPECT_EQ(info_of("lossy.webp").height, kPictureHeight);
  EXPECT_TRUE(info_of("lossy_alpha.webp").has_alpha);
  EXPECT_TRUE(info_of("lossy_alpha.webp").color_profile);
  EXPECT_TRUE(info_of("animated.webp").animated);
  EXPECT_TRUE(info_of("progressive.jpg").color_profile);
  EXPECT_FALSE(info_of("usual.jpg").color_profile);
}

TEST(Probe, TheBeginningOfAFileIsEnough) {
  for (const std::string& name : picture_names()) {
    const std::string file = picture(name);
    const bool is_whole = name.ends_with(".webp") && (name == "turned6.webp" || name.starts_with("animated"));
    if (is_whole) continue;  // EXIF stands at the end, and a frame's header within the frame
    const size_t pixels = name.ends_with(".png")    ? file.find("IDAT") + 4
                          : name.ends_with(".webp") ? file.rfind("VP8") + 18
                                                    : file.find("\xFF\xDA"s) + 16;
    const auto info = probe(bytes_of(file.substr(0, pixels)));
    ASSERT_TRUE(info.ok()) << name << ": " << info.error().what;
    EXPECT_EQ(info->decode_bytes, info_of(name).decode_bytes) << name;
    EXPECT_EQ(info->orientation, info_of(name).orientation) << name;
  }
}

TEST(Probe, DecodingSeveralScansHoldsTheWholePicture) {
  EXPECT_GT(info_of("progressive.jpg").decode_bytes, info_of("usual.jpg").decode_bytes);
  EXPECT_GT(info_of("interlaced.png").decode_bytes, info_of("rgb.png").decode_bytes);
}

TEST(Probe, RefusesJpegsThatAreNotBaselineOrProgressive) {
  const std::string file = picture("usual.jpg");
  EXPECT_THAT(probe_refusal(with_frame(file, 1, '\xC9')), HasSubstr("arithmetically coded"));
  EXPECT_THAT(probe_refusal(with_frame(file, 1, '\xC3')), HasSubstr("lossless"));
  EXPECT_THAT(probe_refusal(with_frame(file, 1, '\xC5')), HasSubstr("hierarchical"));
  EXPECT_THAT(probe_refusal(with_frame(file, 4, 12)), HasSubstr("12 bits a sample"));
  EXPECT_THAT(probe_refusal(with_frame(file, 9, 2)), HasSubstr("2 components"));
  EXPECT_THAT(probe_refusal(with_frame(with_frame(file, 5, 0), 6, 0)), HasSubstr("no pixels"));
}

TEST(Probe, NamesOtherFormats) {
  EXPECT_EQ(probe_refusal(""), "the file is empty");
  EXPECT_THAT(probe_refusal("GIF89a..."), HasSubstr("a GIF"));
  EXPECT_THAT(probe_refusal("BM......"), HasSubstr("a BMP"));
  EXPECT_THAT(probe_refusal("II*\0...."s), HasSubstr("a TIFF"));
  EXPECT_THAT(probe_refusal("....ftypavif"), HasSubstr("AVIF"));
  EXPECT_THAT(probe_refusal("once upon a time"), HasSubstr("neither a JPEG nor a PNG"));
}

TEST(Probe, RefusesPngsWithImpossibleHeaders) {
  std::string file = picture("rgb.png");
  const size_t width = file.find("IHDR") + 4, depth = width + 8;
  std::string other = file;
  other[depth] = 3;
  EXPECT_THAT(probe_refusal(other), HasSubstr("colour type 2 with 3 bits"));
  other = file;
  std::fill_n(other.begin() + static_cast<int64_t>(width), 4, '\0');
  EXPECT_THAT(probe_refusal(other), HasSubstr("no pixels"));
  std::fill_n(other.begin() + static_cast<int64_t>(width), 8, '\x7F');
  EXPECT_THAT(probe_refusal(other), HasSubstr("more than any limit"));
}

TEST(Probe, CheckPictureKeepsTheLimitOnPixels) {
  const ImageInfo info = info_of("rgb.png");
  Processor processor;
  processor.max_pixels = kPictureHeight * kPictureWidth;
  EXPECT_TRUE(check_picture(info, processor).ok());
  --processor.max_pixels;
  const Status status = check_picture(info, processor);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().what, HasSubstr("23 x 17 = 391 pixels, more than max_pixels = 390"));
}

TEST(Probe, CheckPictureRefusesALongRowThatWouldGrow) {
  ImageInfo info = info_of("rgb.png");
  info.height = 1;
  info.width = 1'000'000;
  const Processor processor{.resize = Resize::kShortest, .shortest = 224, .crop = Crop::kCenter};
  EXPECT_FALSE(check_picture(info, processor).ok());
}

// Whatever EXIF says that makes no sense is no orientation.
TEST(Probe, DamagedExifIsIgnored) {
  const std::string file = picture("turned6.jpg");
  const size_t exif = file.find("Exif");
  for (size_t i = exif; i < exif + 32; ++i) {
    for (const char value : {'\0', '\x01', '\x7F', '\xFF'}) {
      std::string other = file;
      other[i] = value;
      const auto info = probe(bytes_of(other));
      ASSERT_TRUE(info.ok()) << i;
      EXPECT_GE(info->orientation, 1);
      EXPECT_LE(info->orientation, 8);
    }
  }
}

}  // namespace
}  // namespace plimsoll::images
