// Pixels that are stored as they are load like the picture that they were made from.
#include "images/stored_pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/pictures.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;

std::string stored(const std::vector<uint8_t>& pixels, const StoredPixels& header) {
  const auto begin = stored_header(header);
  std::string file(reinterpret_cast<const char*>(begin.data()), begin.size());
  return file.append(pixels.begin(), pixels.end());
}

std::string stored_picture() {
  return stored(load_picture(picture("rgb.png"), unchanged()).value(),
                {.width = kPictureWidth, .height = kPictureHeight});
}

TEST(StoredPixels, LoadAsTheirPicture) {
  const std::string file = stored_picture();
  ASSERT_EQ(static_cast<int64_t>(file.size()), stored_bytes(kPictureWidth, kPictureHeight));
  const Augmentations augmentations = {{.kind = Augmentation::Kind::kRandomResizedCrop},
                                       {.kind = Augmentation::Kind::kFlip}};
  const Draw draw{.seed = 3, .augmentations = &augmentations};
  Processor crop = to_size(12, 30);
  crop.crop = Crop::kCenter;
  crop.height = 5;
  for (const Processor& p : {unchanged(), to_size(kSmallHeight, kSmallWidth), crop}) {
    EXPECT_EQ(*load_picture(file, p), *load_picture(picture("rgb.png"), p));
    EXPECT_EQ(*load_picture(file, p, &draw), *load_picture(picture("rgb.png"), p, &draw));
  }
}

TEST(StoredPixels, ThoseThatAreReadyAreNotResizedAgain) {
  Processor processor{
      .height = 6, .width = 6, .resize = Resize::kShortest, .shortest = 8, .crop = Crop::kCenter};
  const std::vector<uint8_t> pixels = load_picture(picture("rgb.png"), processor).value();
  const std::string file = stored(pixels, {.width = 6, .height = 6, .ready = true});
  EXPECT_EQ(*load_picture(file, processor), pixels);
  processor.height = 7;
  const auto refused = load_picture(file, processor);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().what, HasSubstr("the stored pixels are for 6 x 6"));
}

TEST(StoredPixels, DamageIsFound) {
  const std::string file = stored_picture();
  for (size_t size = 0; size < file.size(); size += 13)
    EXPECT_FALSE(load_picture(file.substr(0, size), unchanged()).ok()) << size;
  std::string other = file;
  other[16] = 2;
  EXPECT_THAT(load_picture(other, unchanged()).error().what, HasSubstr("was damaged when it was packed"));
  other[16] = 4;
  EXPECT_FALSE(load_picture(other, unchanged()).ok());
}

}  // namespace
}  // namespace plimsoll::images
