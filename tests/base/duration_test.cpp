#include "base/duration.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Duration, IsToldInTheTwoLargestUnits) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(187), "3m07s");
  EXPECT_EQ(duration_text(2 * 3600 + 5 * 60), "2h05m");
  EXPECT_EQ(duration_text(47 * 3600), "47h00m");
  EXPECT_EQ(duration_text(9 * 86400 + 3 * 3600 + 59), "9d03h");
}

}  // namespace
}  // namespace plimsoll
