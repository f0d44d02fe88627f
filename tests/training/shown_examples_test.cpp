// Which examples are shown: by score, mistakes and right answers, whatever the order.
#include "training/shown_examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::training {
namespace {

using testing::ElementsAre;

std::vector<int64_t> positions_of(const ShownExamples& shown) {
  std::vector<int64_t> positions;
  for (const AnsweredExample& example : shown.chosen()) positions.push_back(example.position);
  return positions;
}

void add(ShownExamples& shown, int64_t position, bool right, float score) {
  shown.add({0, position, {1, right ? 1 : 2, score}});
}

TEST(ShownExamples, MistakesComeFirstTheSurestOfThem) {
  ShownExamples shown;
  add(shown, 0, true, 0.9F);
  add(shown, 1, false, 0.5F);
  add(shown, 2, false, 0.8F);
  add(shown, 3, true, 0.4F);
  add(shown, 4, false, 0.8F);
  EXPECT_THAT(positions_of(shown), ElementsAre(2, 4, 1, 3, 0)) << "of equal scores the earlier one";
  shown.clear();
  EXPECT_TRUE(shown.chosen().empty());
}

TEST(ShownExamples, KeepsRoomForSomeRightAnswers) {
  ShownExamples shown;
  for (int64_t i = 0; i < 40; ++i) {
    add(shown, i, false, static_cast<float>(i) / 100);
    add(shown, 100 + i, true, static_cast<float>(i) / 100);
  }
  const std::vector<int64_t> positions = positions_of(shown);
  ASSERT_EQ(positions.size(), ShownExamples::kMost);
  EXPECT_EQ(positions[0], 39);
  EXPECT_EQ(positions[ShownExamples::kMostMistakes - 1], 28);
  EXPECT_EQ(positions[ShownExamples::kMostMistakes], 100);
  EXPECT_EQ(positions.back(), 103);
}

TEST(ShownExamples, FillsUpWithWhatThereIs) {
  ShownExamples wrong, right;
  for (int64_t i = 0; i < 40; ++i) {
    add(wrong, i, false, 0.5F);
    add(right, i, true, 0.5F);
  }
  add(wrong, 50, true, 0.5F);
  EXPECT_EQ(positions_of(wrong).size(), ShownExamples::kMost);
  EXPECT_EQ(positions_of(wrong).back(), 50);
  EXPECT_EQ(positions_of(right).size(), ShownExamples::kMost);
}

}  // namespace
}  // namespace plimsoll::training
