// Small copies of images: files that are read again, of the size that was asked for.
#include "images/thumbnail.h"

#include <gtest/gtest.h>

#include "images/pictures.h"

namespace plimsoll::images {
namespace {

/// Its pixels, as load reads them.
std::vector<uint8_t> pixels_of(const std::string& png, int64_t side) {
  const auto pixels = load_picture(png, unchanged(side, side));
  EXPECT_TRUE(pixels) << pixels.error().message();
  return pixels ? *pixels : std::vector<uint8_t>();
}

TEST(Thumbnail, IsTheMiddleSquareOfEveryPicture) {
  for (const std::string& name : picture_names()) {
    const std::string file = picture(name);
    const auto small = thumbnail_png(bytes_of(file), 5);
    ASSERT_TRUE(small) << name << small.error().message();
    Processor square = to_size(5, 5);
    square.resize = Resize::kShortest;
    square.shortest = 5;
    square.crop = Crop::kCenter;
    square.interpolation = Interpolation::kBilinear;
    square.alpha = Alpha::kWhite;
    EXPECT_EQ(pixels_of(*small, 5), *load_picture(file, square)) << name;
  }
}

TEST(Thumbnail, DoesNotEnlarge) {
  const std::string file = picture(picture_names().front());
  const auto small = thumbnail_png(bytes_of(file), 500);
  ASSERT_TRUE(small);
  const auto info = probe(bytes_of(*small));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->width, kPictureHeight);
  EXPECT_EQ(info->height, kPictureHeight);
}

TEST(Thumbnail, RefusesWhatIsNoImage) {
  EXPECT_EQ(thumbnail_png(bytes_of("no image"), 10).error().code, ErrorCode::kBadData);
  const std::string file = picture(picture_names().front());
  EXPECT_FALSE(thumbnail_png(bytes_of(file).first(60), 10));
}

}  // namespace
}  // namespace plimsoll::images
