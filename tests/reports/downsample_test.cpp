#include "reports/downsample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::reports {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(Downsample, KeepsSpikesAndBothEnds) {
  std::vector<double> values(100'000, 1.0);
  values[51'234] = 9, values[70'001] = -3;
  const auto kept = downsample(values, 500);
  EXPECT_LE(kept.size(), 1002U);
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 99'999U);
  EXPECT_THAT(kept, Contains(51'234U));
  EXPECT_THAT(kept, Contains(70'001U));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(Downsample, LeavesFewAsTheyAre) {
  EXPECT_THAT(downsample(std::vector<double>{1, NAN, 2, INFINITY}, 10), ElementsAre(0, 2));
  EXPECT_TRUE(downsample({}, 10).empty());
}

}  // namespace
}  // namespace plimsoll::reports
