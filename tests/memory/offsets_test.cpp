// Assignments: least heights by brute force on tiny instances, known ones on cut rectangles, the same plan on
// any number of threads, odd sizes and alignments.
#include "memory/offsets.h"

#include <gtest/gtest.h>

#include <chrono>

#include "instances.h"
#include "memory/live.h"
#include "memory/validator.h"

namespace plimsoll::memory {
namespace {

bool fits(const Buffer& a, int64_t x, const Buffer& b, int64_t y) {
  const bool in_time = a.lower < b.upper && b.lower < a.upper;
  return !in_time || x + a.size <= y || y + b.size <= x;
}

/// The least height: some packing of least height is what a first fit makes of one of the orders, so try them
/// all.
int64_t least_height(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  int64_t least = INT64_MAX;
  do {
    std::vector<int64_t> offsets(buffers.size());
    int64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const Buffer& b = buffers[order[k]];
      int64_t offset = 0;
      for (bool free = false; !free;) {
        free = true;
        for (size_t j = 0; j < k; ++j)
          if (!fits(b, offset, buffers[order[j]], offsets[order[j]])) {
            free = false;
            offset += b.alignment;
            break;
          }
      }
      offsets[order[k]] = offset;
      height = std::max(height, offset + b.size);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Offsets, LeastHeightOfTinyInstances) {
  int64_t above_bound = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Buffer> buffers = random_buffers(seed, pick(random, 1, 7), 8, 9);
    if (seed % 3 == 0)
      for (Buffer& b : buffers) b.alignment = pick(random, 1, 3);
    const Placement placement = assign_offsets(buffers, {.max_nodes = 100'000});
    ASSERT_TRUE(validate(buffers, placement).ok());
    const int64_t least = least_height(buffers);
    // Sizes are rounded up to the alignment that all share: less than one of it may be lost at the top.
    ASSERT_LT(placement.height, least + (seed % 3 == 0 ? 3 : 1)) << "seed " << seed;
    EXPECT_TRUE(placement.optimal || seed % 3 == 0) << "seed " << seed;
    if (placement.optimal) {
      ASSERT_EQ(placement.height, least) << "seed " << seed;
    }
    above_bound += placement.height > placement.lower_bound;
  }
  EXPECT_GT(above_bound, 3);  // some optima are proven by exhaustion, not by the bound
}

TEST(Offsets, CutRectanglesArePackedWithoutWaste) {
  for (uint64_t seed = 0; seed < 2; ++seed)
    for (const size_t count : {100u, 200u, 300u}) {
      const std::vector<Buffer> buffers = guillotine(seed, count, 100'000, 1024);
      const Placement placement = assign_offsets(buffers, {.max_nodes = 400'000});
      EXPECT_EQ(placement.height, 1024) << "seed " << seed << ", " << count << " buffers";
      EXPECT_TRUE(placement.optimal);
    }
}

TEST(Offsets, TrainingStepsReachTheBound) {
  for (const bool keep_gradients : {false, true})
    for (const int64_t layers : {1, 2, 12, 80}) {
      const std::vector<Buffer> buffers = training_step(layers, 576, keep_gradients);
      const Placement placement = assign_offsets(buffers);
      EXPECT_EQ(placement.height, live_profile(buffers).peak_bytes) << layers << " layers";
      EXPECT_TRUE(placement.optimal);
    }
}

TEST(Offsets, ManyBuffersAreNoObstacle) {
  const std::vector<Buffer> buffers = training_step(440, 1024, false);
  ASSERT_GT(buffers.size(), 18'000u);
  const auto start = std::chrono::steady_clock::now();
  const Placement placement = assign_offsets(buffers);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(placement.optimal);
  EXPECT_LT(elapsed.count(), 10) << "0.05 s is usual, this is for sanitizers and loaded machines";

  const std::vector<Buffer> tangled = random_buffers(1, 5000, 3000, 1000);
  const Placement other = assign_offsets(tangled);
  EXPECT_LE(static_cast<double>(other.height), 1.1 * static_cast<double>(other.lower_bound));
}

TEST(Offsets, SamePlanForAnyNumberOfThreads) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<Buffer> buffers =
        seed % 2 == 0 ? guillotine(seed, 150, 60, 256) : random_buffers(seed, 120, 60, 50);
    const Placement one = assign_offsets(buffers, {.max_nodes = 10'000, .num_threads = 1});
    for (const int threads : {1, 2, 8}) {
      const Placement other = assign_offsets(buffers, {.max_nodes = 10'000, .num_threads = threads});
      EXPECT_EQ(other.offsets, one.offsets) << "seed " << seed << ", " << threads << " threads";
      EXPECT_EQ(other.method, one.method);
      EXPECT_EQ(other.optimal, one.optimal);
    }
  }
}

TEST(Offsets, CapacityIsGoodEnough) {
  const std::vector<Buffer> buffers = random_buffers(3, 60, 40, 1000);
  const int64_t bound = live_profile(buffers).peak_bytes;
  const Placement placement = assign_offsets(buffers, {.capacity = 2 * bound});
  EXPECT_LE(placement.height, 2 * bound);
  EXPECT_EQ(placement.lower_bound, bound);
}

TEST(Offsets, AlignmentIsHonoured) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Buffer> buffers = random_buffers(seed, 40, 20, 500);
    for (Buffer& b : buffers) b.alignment = int64_t{1} << pick(random, 0, 7);
    const Placement mixed = assign_offsets(buffers, {.max_nodes = 1'000});
    EXPECT_TRUE(validate(buffers, mixed).ok());
    for (Buffer& b : buffers) b.alignment = 64;
    const Placement uniform = assign_offsets(buffers, {.max_nodes = 1'000});
    EXPECT_TRUE(validate(buffers, uniform).ok());
  }
}

TEST(Offsets, BoundCountsThePaddingThatAllShare) {
  // Three of 65 bytes at multiples of 64: 128 + 128 + 65.
  const std::vector<Buffer> buffers(3, Buffer{0, 1, 65, 64});
  const Placement placement = assign_offsets(buffers);
  EXPECT_EQ(placement.lower_bound, 321);
  EXPECT_EQ(placement.height, 321);
  EXPECT_TRUE(placement.optimal);
}

TEST(Offsets, NothingAndNothingMuch) {
  EXPECT_EQ(assign_offsets({}).height, 0);
  EXPECT_TRUE(assign_offsets({}).optimal);
  const std::vector<Buffer> empty{{0, 5, 0}, {0, 5, 0, 64}};
  EXPECT_EQ(assign_offsets(empty).height, 0);
  EXPECT_EQ(assign_offsets(empty).offsets, (std::vector<int64_t>{0, 0}));
  const std::vector<Buffer> mixed{{0, 5, 0}, {0, 5, 7}, {1, 2, 0}, {2, 9, 3}};
  EXPECT_EQ(assign_offsets(mixed).height, 10);
  const std::vector<Buffer> same(2000, Buffer{3, 4, 5});
  EXPECT_EQ(assign_offsets(same).height, 10'000);
}

TEST(Offsets, ExtremeTimesAndSizes) {
  const std::vector<Buffer> buffers{{INT64_MIN, INT64_MAX, int64_t{1} << 60},
                                    {INT64_MIN, 0, int64_t{1} << 60},
                                    {0, INT64_MAX, int64_t{1} << 60},
                                    {-5, 5, 1}};
  const Placement placement = assign_offsets(buffers);
  EXPECT_TRUE(validate(buffers, placement).ok());
  EXPECT_EQ(placement.height, (int64_t{1} << 61) + 1);
}

TEST(Offsets, WhatCannotBeAssignedIsNamed) {
  const auto error = [](std::vector<Buffer> buffers) { return check_buffers(buffers).error().message(); };
  EXPECT_EQ(error({{0, 1, 1}, {4, 4, 1}}), "lifetime [4, 4) is empty: buffer 1");
  EXPECT_EQ(error({{0, 1, -1}}), "size -1 is negative: buffer 0");
  EXPECT_EQ(error({{0, 1, 1, 0}}), "alignment 0 is not positive: buffer 0");
  const int64_t half = int64_t{1} << 61;
  EXPECT_EQ(error({{0, 1, half}, {0, 1, half}, {1, 2, 1}}),
            "sizes add up to more than 4611686018427387904 bytes: buffer 2");
  EXPECT_FALSE(check_buffers(std::vector<Buffer>{{0, 1, INT64_MAX}, {0, 1, INT64_MAX}}).ok());
  EXPECT_FALSE(check_buffers(std::vector<Buffer>{{0, 1, 1, INT64_MAX}}).ok());
  EXPECT_DEATH((void)assign_offsets(std::vector<Buffer>{{4, 4, 1}}), "is empty: buffer 0");
}

/// What is loaded ahead, as much as a window of bytes holds: first fit leaves a third and more above the
/// bound.
TEST(Offsets, WindowsThatSlideAreNotLeftToFirstFit) {
  constexpr int64_t kSizes[] = {1, 1, 4, 4, 12, 12, 12, 40}, kWindow = 300;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Buffer> buffers;
    int64_t ahead = 0;
    size_t first = 0;
    for (int64_t at = 0; at < 1600; ++at) {
      buffers.push_back({.lower = 0, .upper = at + 1, .size = 4096 * kSizes[pick(random, 0, 7)]});
      for (ahead += buffers.back().size; ahead > 4096 * kWindow; ++first) ahead -= buffers[first].size;
      buffers.back().lower = static_cast<int64_t>(first);
    }
    const Placement placement = assign_offsets(buffers);
    EXPECT_EQ(placement.method, "best fit") << seed;
    EXPECT_LE(placement.height, placement.lower_bound + placement.lower_bound / 10 * 3) << seed;
  }
}

/// Sizes and lifetimes over many orders of magnitude, too many for a search and for orders that learn slowly.
TEST(Offsets, VeryDifferentSizesAndLifetimesComeWithinAHundredthOfTheBound) {
  std::mt19937_64 random(3);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 18'100; ++i) {
    const int64_t length = pick(random, 1, int64_t{1} << pick(random, 0, 14));
    const int64_t lower = pick(random, 0, 17'999);
    buffers.push_back({.lower = lower,
                       .upper = std::min<int64_t>(18'000, lower + length),
                       .size = 64 * pick(random, 1, int64_t{1} << pick(random, 0, 20))});
  }
  const Placement placement = assign_offsets(buffers);
  EXPECT_EQ(placement.method, "first fit size, promoted");
  EXPECT_LE(placement.height, placement.lower_bound + placement.lower_bound / 100);
}

}  // namespace
}  // namespace plimsoll::memory
