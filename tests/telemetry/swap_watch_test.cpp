#include "telemetry/swap_watch.h"

#include <gtest/gtest.h>

namespace plimsoll::telemetry {
namespace {

TEST(SwapWatch, SaysOnceWhatHasGoneOut) {
  int64_t swapped = 5 << 20;  // before the run began
  double now = 0;
  SwapWatch watch([&] { return swapped; }, [&] { return ++now; });
  EXPECT_FALSE(watch.look());
  swapped += 4096;
  EXPECT_FALSE(watch.look());
  swapped += 3 << 20;
  EXPECT_EQ(watch.look(), (3 << 20) + 4096);
  swapped += 3 << 20;
  EXPECT_FALSE(watch.look());
}

TEST(SwapWatch, LooksOnceASecond) {
  int64_t looks = 0;
  double now = 0;
  SwapWatch watch([&] { return ++looks, int64_t{0}; }, [&] { return now += 0.25; });
  for (int step = 0; step < 40; ++step) (void)watch.look();
  EXPECT_EQ(looks, 1 + 10);
}

}  // namespace
}  // namespace plimsoll::telemetry
