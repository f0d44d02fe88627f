#include "train/swap_watch.h"

#include <gtest/gtest.h>

namespace plimsoll::train {
namespace {

TEST(SwapWatch, SaysOnceWhatHasGoneOut) {
  int64_t swapped = 5 << 20;  // before the run began
  SwapWatch watch([&] { return swapped; });
  EXPECT_FALSE(watch.look());
  swapped += 4096;
  EXPECT_FALSE(watch.look());
  swapped += 3 << 20;
  EXPECT_EQ(watch.look(), (3 << 20) + 4096);
  swapped += 3 << 20;
  EXPECT_FALSE(watch.look());
}

}  // namespace
}  // namespace plimsoll::train
