// The greedy fills against slow and obvious ones.
#include "memory/greedy.h"

#include <gtest/gtest.h>

#include <array>

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
