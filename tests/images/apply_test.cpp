// Augmentations: the recorded results of torchvision, what draws depend on, and how they are distributed.
#include "images/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "images/adjust.h"
#include "images/auto_augment.h"
#include "images/pictures.h"

namespace plimsoll::images {
namespace {

using Kind = Augmentation::Kind;

std::vector<uint8_t> plain() { return load_picture(picture("rgb.png"), unchanged()).value(); }

std::vector<uint8_t> augmented(const Augmentations& list, Draw draw) {
  draw.augmentations = &list;
  return load_picture(picture("rgb.png"), unchanged(), &draw).value();
}

TEST(Apply, ChangesAreTorchvisions) {
  constexpr double kMagnitudes[] = {0,   0.31, -0.4, 5.7, -3.2, 31, -0.3,
                                    0.6, 0.45, 0.8,  3,   0.5,  0,  0};  // as make.py
  const std::string recorded = picture("changes.rgb");
  const std::vector<uint8_t> before = plain();
  ASSERT_EQ(recorded.size(), (kNumChanges + 1) * before.size());
  for (int64_t i = 0; i <= kNumChanges; ++i) {
    std::vector<uint8_t> pixels = before, room = before;
    if (i == kNumChanges) {
      adjust_hue(pixels, 0.2);
    } else {
      apply_change(static_cast<Change>(i), kMagnitudes[i], {pixels, room, kPictureHeight, kPictureWidth});
    }
    const std::string own(pixels.begin(), pixels.end());
    EXPECT_EQ(own, recorded.substr(at(i) * before.size(), before.size())) << i;
  }
}

TEST(Apply, DrawsDependOnSeedEpochSampleAndPlaceAlone) {
  const Augmentations list = {{.kind = Kind::kRandomResizedCrop},
                              {.kind = Kind::kFlip},
                              {.kind = Kind::kColorJitter, .brightness = {0.5, 1.5}, .hue = {-0.2, 0.2}},
                              {.kind = Kind::kRandAugment},
                              {.kind = Kind::kTrivialAugment},
                              {.kind = Kind::kErase, .p = 1, .scale = {0.02, 0.33}}};
  const Draw draw{.seed = 7, .epoch = 3, .sample = 11};
  const std::vector<uint8_t> first = augmented(list, draw);
  (void)augmented(list, {.seed = 7, .epoch = 3, .sample = 12});
  EXPECT_EQ(augmented(list, draw), first);
  EXPECT_NE(augmented(list, {.seed = 8, .epoch = 3, .sample = 11}), first);
  EXPECT_NE(augmented(list, {.seed = 7, .epoch = 4, .sample = 11}), first);
  EXPECT_NE(augmented(list, {.seed = 7, .epoch = 3, .sample = 12}), first);
  // The same augmentation twice draws twice.
  const Augmentation erase{.kind = Kind::kErase, .p = 1, .scale = {0.02, 0.33}};
  EXPECT_NE(augmented({erase, erase}, draw), augmented({erase}, draw));
}

TEST(Apply, FlipsMirrorThePicture) {
  const std::vector<uint8_t> before = plain();
  const std::vector<uint8_t> across = augmented({{.kind = Kind::kFlip, .p = 1}}, {});
  const std::vector<uint8_t> down = augmented({{.kind = Kind::kVerticalFlip, .p = 1}}, {});
  const auto pixel = [](int64_t x, int64_t y) { return at(3 * (y * kPictureWidth + x)); };
  for (int64_t y = 0; y < kPictureHeight; ++y) {
    for (int64_t x = 0; x < kPictureWidth; ++x) {
      EXPECT_EQ(across[pixel(x, y)], before[pixel(kPictureWidth - 1 - x, y)]);
      EXPECT_EQ(down[pixel(x, y)], before[pixel(x, kPictureHeight - 1 - y)]);
    }
  }
  EXPECT_EQ(augmented({{.kind = Kind::kFlip, .p = 0}}, {}), before);
}

TEST(Apply, ErasingFillsWithTheMean) {
  const std::vector<uint8_t> before = plain();
  const std::vector<uint8_t> after =
      augmented({{.kind = Kind::kErase, .p = 1, .scale = {0.2, 0.3}, .ratio = {0.8, 1.2}}}, {});
  int64_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    if (after[i] == before[i]) continue;
    EXPECT_EQ(after[i], 128);  // 0.5 of 255
    ++changed;
  }
  EXPECT_GT(changed, static_cast<int64_t>(before.size()) / 8);
  EXPECT_LT(changed, static_cast<int64_t>(before.size()) / 2);
}

// 10^5 draws: the share of the area is uniform, the ratio in its logarithm, the box lies within the picture.
TEST(Apply, CropsAreDistributedAsTorchvisions) {
  constexpr int64_t kDraws = 100'000, kSide = 10'000;
  const Augmentation crop{.kind = Kind::kRandomResizedCrop, .scale = {0.1, 0.5}, .ratio = {0.8, 1.25}};
  std::array<int64_t, 10> areas{}, ratios{}, lefts{};
  for (int64_t i = 0; i < kDraws; ++i) {
    const Box box = draw_crop({.seed = 1, .sample = i}, crop, kSide, kSide);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.left + box.width, kSide);
    ASSERT_LE(box.top + box.height, kSide);
    const double area = static_cast<double>(box.width * box.height) / (kSide * kSide);
    const double ratio =
        std::log(static_cast<double>(box.width) / static_cast<double>(box.height)) / std::log(1.25);
    ++areas[at(std::clamp<int64_t>(static_cast<int64_t>((area - 0.1) / 0.4 * 10), 0, 9))];
    ++ratios[at(std::clamp<int64_t>(static_cast<int64_t>((ratio + 1) * 5), 0, 9))];
    ++lefts[at(box.left * 10 / (kSide - box.width + 1))];
  }
  const double deviation = std::sqrt(kDraws * 0.1 * 0.9);
  for (const auto* counts : {&areas, &ratios, &lefts})
    for (const int64_t count : *counts) EXPECT_NEAR(static_cast<double>(count), kDraws / 10, 5 * deviation);
}

// Where no try fits, the middle at the nearest ratio.
TEST(Apply, CropsOfLongPicturesAreTheMiddle) {
  const Augmentation crop{.kind = Kind::kRandomResizedCrop};
  const Box box = draw_crop({}, crop, 1000, 10);
  EXPECT_EQ(box.height, 10);
  EXPECT_LE(box.width, 13);
  const Box one = draw_crop({}, crop, 1, 1000);
  EXPECT_EQ(one.width, 1);
  EXPECT_EQ(one.height, 1);
}

// Boxes of any form in scratch memory that is planned before they are drawn.
TEST(Apply, CropsOfAnyRatioFitInTheScratchMemory) {
  for (const Augmentation::Range ratio :
       {Augmentation::Range{0.75, 1.34}, {0.01, 100}, {0.51, 0.6}, {0.45, 0.5}}) {
    const Augmentations list = {{.kind = Kind::kRandomResizedCrop, .scale = {0.01, 1}, .ratio = ratio}};
    for (const char* name : {"rgb.png", "turned6.jpg", "interlaced.png"}) {
      for (int64_t sample = 0; sample < 50; ++sample) {
        const Draw draw{.seed = 5, .sample = sample, .augmentations = &list};
        for (const Processor& processor : {to_size(9, 11), to_size(40, 5), to_size(4, 30)})
          ASSERT_TRUE(load_picture(picture(name), processor, &draw).ok());
      }
    }
  }
}

// A ratio just above 1/2 allows boxes of many sizes that are resized by columns first, where rounding counts.
TEST(Apply, TheLargestCropIsPlannedForRoundedBoxes) {
  const Augmentation crop{.kind = Kind::kRandomResizedCrop, .scale = {0.11, 0.15}, .ratio = {0.52, 0.5201}};
  constexpr int64_t kSide = 500;
  const Processor processor = to_size(10, 10, Interpolation::kBilinear);
  const int64_t planned = most_crop_bytes(kSide, kSide, processor, crop, /*stored=*/false);
  int64_t most = 0;
  for (int64_t sample = 0; sample < 5000; ++sample) {
    const Geometry box = geometry(draw_crop({.seed = 2, .sample = sample}, crop, kSide, kSide), processor);
    most = std::max(most, resize_bytes(box, processor.interpolation, /*stored=*/false));
  }
  EXPECT_LE(most, planned);
  EXPECT_GT(most, planned / 2);
}

TEST(Apply, JitterFactorsAreUniform) {
  // White: brightness alone shows in the level.
  constexpr int64_t kDraws = 20'000;
  const Augmentations list = {{.kind = Kind::kColorJitter, .brightness = {0.5, 1}}};
  const Processor processor{.height = 1, .width = 1};
  std::array<int64_t, 10> counts{};
  std::array<std::byte, 64> memory;
  for (int64_t i = 0; i < kDraws; ++i) {
    std::array<uint8_t, 3> pixel = {255, 255, 255};
    Arena arena(memory);
    apply({.seed = 3, .sample = i, .augmentations = &list}, processor, pixel, arena);
    ++counts[at(static_cast<int64_t>(std::clamp((pixel[0] - 127.5) / 12.75, 0.0, 9.0)))];
  }
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), kDraws / 10, 250);
}

}  // namespace
}  // namespace plimsoll::images
