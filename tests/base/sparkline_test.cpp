#include "base/sparkline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/terminal.h"

namespace plimsoll {
namespace {

TEST(Sparkline, HasTheHeightsOfTheValues) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::vector<double>{5, 5}, 8), "▁▁");
}

TEST(Sparkline, IsNoWiderThanAskedFor) {
  std::vector<double> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  EXPECT_EQ(columns_of(sparkline(values, 20)), 20);
  EXPECT_EQ(sparkline(values, 2), "▁█");
}

TEST(Sparkline, LeavesOutWhatIsNoNumber) {
  constexpr double kMost = std::numeric_limits<double>::max();
  EXPECT_EQ(sparkline(std::vector<double>{NAN, 1, INFINITY, 2}, 8), "▁█");
  EXPECT_EQ(sparkline(std::vector<double>{-kMost, kMost}, 8), "▁█");
  EXPECT_EQ(sparkline(std::vector<double>{NAN}, 8), "");
  EXPECT_EQ(sparkline({}, 8), "");
}

}  // namespace
}  // namespace plimsoll
