#include "base/median.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Median, IsTheUpperOneOfTwoInTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1}), 9);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 1e30}), 9);
}

TEST(Median, OfNothingIsZero) { EXPECT_EQ(median({}), 0); }

}  // namespace
}  // namespace plimsoll
