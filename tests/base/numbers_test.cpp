// Numbers for people.
#include "base/numbers.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Grouped, PutsCommasBetweenThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-134515008), "-134,515,008");
  EXPECT_EQ(grouped(-100), "-100");
}

}  // namespace
}  // namespace plimsoll
