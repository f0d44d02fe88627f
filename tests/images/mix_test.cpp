// MixUp and CutMix: shares, boxes, pixels.
#include "images/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::images {
namespace {

TEST(Mix, NoneKeepsThePicture) {
  const Mix mix = draw_mix({}, 1, 1, 8, 8);
  EXPECT_EQ(mix.share, 1);
  EXPECT_FALSE(mix.cut);
}

TEST(Mix, PartnersAreTheBatchRolledByOne) {
  EXPECT_EQ(mix_partner(0, 4), 3);
  EXPECT_EQ(mix_partner(3, 4), 2);
  EXPECT_EQ(mix_partner(0, 1), 0);
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)).
TEST(Mix, SharesAreBetaDistributed) {
  constexpr int64_t kDraws = 100'000;
  for (const double alpha : {0.2, 1.0, 8.0}) {
    double sum = 0, squares = 0;
    for (int64_t step = 0; step < kDraws; ++step) {
      const double share = draw_mix({.mixup = alpha}, 9, step, 8, 8).share;
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.006);
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.003) << alpha;
  }
}

TEST(Mix, SmallAlphasAreFinite) {
  for (int64_t step = 0; step < 1000; ++step)
    EXPECT_TRUE(std::isfinite(draw_mix({.mixup = 1e-4}, 9, step, 8, 8).share));
}

TEST(Mix, CutShareIsWhatTheBoxLeaves) {
  for (int64_t step = 0; step < 1000; ++step) {
    const Mix mix = draw_mix({.cutmix = 1}, 2, step, 20, 30);
    ASSERT_TRUE(mix.cut);
    ASSERT_GE(mix.top, 0);
    ASSERT_LE(mix.bottom, 20);
    ASSERT_GE(mix.left, 0);
    ASSERT_LE(mix.right, 30);
    EXPECT_DOUBLE_EQ(mix.share,
                     1 - static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left)) / 600);
  }
}

TEST(Mix, BothAreDrawnEvenly) {
  int cuts = 0;
  for (int64_t step = 0; step < 10'000; ++step)
    cuts += draw_mix({.mixup = 0.2, .cutmix = 1}, 4, step, 8, 8).cut ? 1 : 0;
  EXPECT_NEAR(cuts, 5000, 250);
}

TEST(Mix, BlendsOrCutsPixels) {
  std::vector<uint8_t> pixels(2 * 3 * 3, 100);
  const std::vector<uint8_t> partner(pixels.size(), 11);
  apply_mix({.share = 0.25}, pixels, partner, 3);
  EXPECT_THAT(pixels, testing::Each(33));  // 33.25
  std::ranges::fill(pixels, uint8_t{100});
  apply_mix({.share = 0.5, .cut = true, .top = 1, .bottom = 2, .left = 1, .right = 3}, pixels, partner, 3);
  const std::vector<uint8_t> expected = {100, 100, 100, 100, 100, 100, 100, 100, 100,
                                         100, 100, 100, 11,  11,  11,  11,  11,  11};
  EXPECT_EQ(pixels, expected);
}

}  // namespace
}  // namespace plimsoll::images
