// WebP's container: where the first frame lies, and what contradicts itself.
#include "images/webp_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/pictures.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;

std::string webp_refusal(const std::string& file) {
  const auto info = probe(bytes_of(file));
  return info.ok() ? "" : info.error().what;
}

TEST(WebpFile, FindsTheFirstFrame) {
  const std::string file = picture("animated_spot.webp");
  const auto webp = read_webp(bytes_of(file));
  ASSERT_TRUE(webp.ok()) << webp.error().message();
  EXPECT_TRUE(webp->animated);
  EXPECT_TRUE(webp->lossless);
  EXPECT_EQ(webp->width, kPictureWidth);
  EXPECT_EQ(webp->height, kPictureHeight);
  EXPECT_LT(webp->frame_width, kPictureWidth);
  EXPECT_EQ(webp->left, 6);
  EXPECT_EQ(webp->top, 4);
  const std::string still = picture("lossy.webp");
  EXPECT_EQ(read_webp(bytes_of(still))->frame.size(), still.size());
  EXPECT_FALSE(read_webp(bytes_of(still))->lossless);
}

TEST(WebpFile, RefusesAContainerThatContradictsItself) {
  const std::string file = picture("animated_spot.webp");
  const size_t frame = file.find("ANMF") + 8;
  std::string other = file;
  other[frame] = 100;  // 200 pixels from the left
  EXPECT_THAT(webp_refusal(other), HasSubstr("stands outside of its picture"));
  other = file;
  other[frame + 6] = 1;  // two pixels wide
  EXPECT_THAT(webp_refusal(other), HasSubstr("first frame has another size"));
  EXPECT_THAT(webp_refusal("RIFF....WEBPVP8X"), HasSubstr("cut off"));
  EXPECT_THAT(webp_refusal("RIFF....WEBPonce upon a time there was"), HasSubstr("WebP"));
}

}  // namespace
}  // namespace plimsoll::images
