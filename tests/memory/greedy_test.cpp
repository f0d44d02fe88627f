// The greedy fills against slow and obvious ones.
#include "memory/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "instances.h"

namespace plimsoll::memory {
namespace {

constexpr std::array kKeys{Key::kLoad, Key::kLifetime, Key::kArea};

bool share_time(const Item& a, const Item& b) { return a.first < b.last && b.first < a.last; }

std::vector<int64_t> slow_first_fit(const Problem& problem, const std::vector<int32_t>& rank) {
  std::vector<int64_t> offsets(rank.size(), -1);
  for (size_t r = 0; r < rank.size(); ++r) {
    const auto i =
        static_cast<size_t>(std::find(rank.begin(), rank.end(), static_cast<int32_t>(r)) - rank.begin());
    const Item& item = problem.items[i];
    int64_t offset = 0;
    for (bool again = true; again;) {
      again = false;
      for (size_t j = 0; j < rank.size(); ++j) {
        if (offsets[j] < 0 || !share_time(item, problem.items[j])) continue;
        const int64_t top = offsets[j] + problem.items[j].size;
        if (offsets[j] >= offset + item.size || top <= offset) continue;
        offset = align_up(top, item.alignment);
        again = true;
      }
    }
    offsets[i] = offset;
  }
  return offsets;
}

std::vector<int64_t> slow_skyline(const Problem& problem, const std::vector<int32_t>& rank) {
  std::vector<int64_t> tops(problem.load.size(), 0);
  std::vector<int64_t> offsets(rank.size(), -1);
  for (size_t n = 0; n < rank.size(); ++n) {
    std::pair<int64_t, int32_t> best{INT64_MAX, 0};
    size_t chosen = 0;
    for (size_t i = 0; i < rank.size(); ++i) {
      if (offsets[i] >= 0) continue;
      const Item& item = problem.items[i];
      const int64_t height = *std::max_element(tops.begin() + item.first, tops.begin() + item.last);
      if (std::pair(height, rank[i]) >= best) continue;
      best = {height, rank[i]};
      chosen = i;
    }
    const Item& item = problem.items[chosen];
    offsets[chosen] = align_up(best.first, item.alignment);
    std::fill(tops.begin() + item.first, tops.begin() + item.last, offsets[chosen] + item.size);
  }
  return offsets;
}

TEST(Greedy, AgreesWithTheObviousOnes) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    std::vector<Buffer> buffers = random_buffers(seed, seed < 25 ? 60 : 700, 100, 30);
    if (seed % 2 == 0)
      for (Buffer& b : buffers) b.alignment = 1 + b.size % 4;
    const Problem problem = make_problem(buffers);
    const std::vector<int32_t> rank = rank_by(problem, kKeys);
    EXPECT_EQ(first_fit(problem, rank).offsets, slow_first_fit(problem, rank)) << "seed " << seed;
    EXPECT_EQ(skyline(problem, rank).offsets, slow_skyline(problem, rank)) << "seed " << seed;
  }
}

/// The gap below `limit` that the item goes into, by what each offset meets; -1: none.
int64_t slow_gap(const Problem& problem, const std::vector<int64_t>& offsets, const Item& item, int64_t limit,
                 bool in_smallest) {
  std::vector<bool> taken(static_cast<size_t>(limit), false);
  for (size_t j = 0; j < offsets.size(); ++j)
    if (offsets[j] >= 0 && share_time(item, problem.items[j]))
      std::fill_n(taken.begin() + offsets[j], problem.items[j].size, true);
  int64_t best = -1, smallest = 0;
  for (int64_t low = 0; low < limit; ++low) {
    if (taken[static_cast<size_t>(low)]) continue;
    int64_t high = low;
    while (high < limit && !taken[static_cast<size_t>(high)]) ++high;
    const int64_t offset = align_up(low, item.alignment);
    if (offset + item.size <= high && (best < 0 || (in_smallest && high - low < smallest)))
      best = offset, smallest = high - low;
    low = high;
  }
  return best;
}

TEST(Greedy, BestFitTakesTheSmallestGapAsItemsAreBorn) {
  int left_over = 0, placed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<Buffer> buffers = random_buffers(seed, 60, 100, 30);
    if (seed % 2 == 0)
      for (Buffer& b : buffers) b.alignment = 1 + b.size % 4;
    const Problem problem = make_problem(buffers);
    const int64_t limit = problem.bound + problem.bound * static_cast<int64_t>(seed % 6) / 10;
    std::vector<bool> before;
    for (const Item& item : problem.items) before.push_back(item.last - item.first > 12);
    const BestFit packed = best_fit(problem, before, limit, 1, 0);
    const auto key = [&](int32_t i) {
      const Item& item = problem.items[at(i)];
      return before[at(i)] ? std::tuple(0, -item.size, static_cast<int64_t>(-item.last), i)
                           : std::tuple(1, static_cast<int64_t>(item.first), -item.size, i);
    };
    std::vector<int32_t> order(before.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, key);
    std::vector<int64_t> offsets(before.size(), -1);
    for (const int32_t i : order) {
      const int64_t offset = slow_gap(problem, offsets, problem.items[at(i)], limit, !before[at(i)]);
      if (offset < 0) {
        EXPECT_EQ(packed.left_over, i) << "seed " << seed;
        break;
      }
      offsets[at(i)] = offset;
      EXPECT_EQ(packed.packing.offsets[at(i)], offset) << "seed " << seed;
    }
    (packed.left_over < 0 ? placed : left_over) += 1;
    if (packed.left_over < 0) continue;
    const BestFit twice = best_fit(problem, before, limit, 2, INT64_MAX);
    before[at(packed.left_over)] = true;
    EXPECT_EQ(twice.packing.offsets, best_fit(problem, before, limit, 1, 0).packing.offsets)
        << "seed " << seed;
    EXPECT_EQ(best_fit(problem, before, limit, 20, 0).packing.offsets, twice.packing.offsets)
        << "steps end it";
  }
  EXPECT_GT(placed, 10);
  EXPECT_GT(left_over, 10);
}

TEST(Greedy, RanksByEachKeyInTurn) {
  //                                     load 9      load 9      load 5
  const std::vector<Buffer> buffers{{0, 2, 4}, {0, 4, 5}, {3, 9, 5}};
  const Problem problem = make_problem(buffers);
  EXPECT_EQ(rank_by(problem, std::array{Key::kSize, Key::kLifetime}), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(rank_by(problem, std::array{Key::kLate}), (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(rank_by(problem, std::array{Key::kEarly, Key::kArea}), (std::vector<int32_t>{1, 0, 2}));
  EXPECT_EQ(rank_by(problem, std::array{Key::kLoad}), (std::vector<int32_t>{2, 0, 1}));
}

}  // namespace
}  // namespace plimsoll::memory
