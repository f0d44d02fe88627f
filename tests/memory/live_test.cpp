#include "memory/live.h"

#include <gtest/gtest.h>

#include "instances.h"

namespace plimsoll::memory {
namespace {

TEST(Live, ProfileOfASmallProgram) {
  //   time   0  1  2  3  4  5  6        sums: 5 on [0,2), 12 on [2,3), 7 on [3,5), nothing, 12 on [6,8)
  const std::vector<Buffer> buffers{{0, 3, 5}, {2, 5, 7}, {6, 8, 12}, {0, 9, 0}};
  const LiveProfile profile = live_profile(buffers);
  EXPECT_EQ(profile.peak_bytes, 12);
  ASSERT_EQ(profile.spans.size(), 4u);
  EXPECT_EQ(profile.spans[1].lower, 2);
  EXPECT_EQ(profile.spans[1].upper, 3);
  EXPECT_EQ(profile.spans[3].lower, 6);
  ASSERT_EQ(profile.peaks.size(), 2u);
  EXPECT_EQ(profile.peaks[0].lower, 2);
  EXPECT_EQ(profile.peaks[1].upper, 8);
  EXPECT_EQ(profile.alive_at_peak, (std::vector<int64_t>{1, 0, 3}));  // largest first
}

TEST(Live, NothingAlive) {
  EXPECT_EQ(live_profile({}).peak_bytes, 0);
  EXPECT_TRUE(live_profile({}).peaks.empty());
}

TEST(Live, EqualNeighboursAreOneSpan) {
  const std::vector<Buffer> buffers{{0, 3, 5}, {3, 6, 5}};
  const LiveProfile profile = live_profile(buffers);
  ASSERT_EQ(profile.spans.size(), 1u);
  EXPECT_EQ(profile.spans[0].upper, 6);
}

TEST(Live, AgreesWithASumAtEveryTime) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 30, 20, 100);
    const LiveProfile profile = live_profile(buffers);
    int64_t peak = 0;
    for (int64_t time = 0; time < 50; ++time) {
      int64_t sum = 0;
      for (const int64_t i : alive_at(buffers, time)) sum += buffers[static_cast<size_t>(i)].size;
      peak = std::max(peak, sum);
      int64_t stated = 0;
      for (const LiveSpan& span : profile.spans)
        if (span.lower <= time && time < span.upper) stated = span.live_bytes;
      ASSERT_EQ(stated, sum) << "seed " << seed << " time " << time;
    }
    EXPECT_EQ(profile.peak_bytes, peak);
  }
}

}  // namespace
}  // namespace plimsoll::memory
