#include "base/sparkline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/text_layout.h"

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

TEST(Course, KeepsTheShapeOfAnyLength) {
  Course course;
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) course.add(i);
  course.add(NAN);
  ASSERT_GE(course.means().size(), 64U);
  EXPECT_LE(course.means().size(), 128U);
  EXPECT_TRUE(std::is_sorted(course.means().begin(), course.means().end()));
  for (const double mean : course.means()) sum += mean;
  EXPECT_NEAR(sum / static_cast<double>(course.means().size()), 50'000, 1000);
}

TEST(Sparkline, WantsUtf8) {
  const auto shows = [](const char* term, const char* locale) {
    setenv("TERM", term, 1);
    setenv("LC_ALL", locale, 1);
    return shows_sparklines();
  };
  EXPECT_TRUE(shows("xterm", "C.UTF-8"));
  EXPECT_FALSE(shows("dumb", "C.UTF-8"));
  EXPECT_FALSE(shows("xterm", "C"));
  unsetenv("LC_ALL");
}

}  // namespace
}  // namespace plimsoll
