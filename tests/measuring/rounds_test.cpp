// With measurements and clocks that are made up: a disturbed moment, a share that cannot be.
#include "measuring/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::measuring {
namespace {

using testing::ElementsAre;

TEST(Rounds, TakeTurnsAndAMomentMovesNone) {
  std::vector<std::pair<size_t, int>> order;
  // While the second round runs all takes three times as long.
  const OfRounds rounds =
      measure_in_rounds({.items = 2, .rounds = 3, .seconds_for_rounds = 1e9, .now = [] { return 0.0; }},
                        [&](size_t item, int round) {
                          order.emplace_back(item, round);
                          const double seconds = (item == 0 ? 1.0 : 0.5) * (round == 1 ? 3 : 1);
                          return std::vector<double>{seconds, seconds, 100};
                        });
  EXPECT_THAT(order, ElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(0, 1), std::pair(1, 1),
                                 std::pair(0, 2), std::pair(1, 2)));
  EXPECT_THAT(rounds[0], ElementsAre(1, 3, 1));
  EXPECT_EQ(share_of_rounds(rounds[1], rounds[0]), 0.5) << "both were disturbed alike";
}

TEST(Rounds, EndWithTheirTime) {
  double time = 0;
  const auto measure = [&](size_t, int) {
    ++time;
    return std::vector<double>{1};
  };
  const RoundPlan plan{.items = 4, .rounds = 9, .seconds_for_rounds = 6, .now = [&] { return time; }};
  const OfRounds rounds = measure_in_rounds(plan, measure);
  EXPECT_EQ(rounds[2].size(), 2U);
  EXPECT_EQ(rounds[3].size(), 1U) << "the first round is whole";
  time = 0;
  const OfRounds few =
      measure_in_rounds({.items = 4, .most_seconds = 1, .now = [&] { return time; }}, measure);
  EXPECT_EQ(few[1].size(), 1U);
  EXPECT_TRUE(few[3].empty());
}

TEST(Rounds, SpreadIsWhatRoundsDifferBy) {
  EXPECT_EQ(spread_of({{1, 1, 1}, {2, 2, 2}}), 0);
  EXPECT_NEAR(spread_of({{1, 1.1, 0.9}, {2, 2.2, 1.8}, {5, 5.5, 4.5}}), 0.1, 1e-12);
  EXPECT_EQ(spread_of({{1}, {}}), 0) << "one round says nothing";
}

/// One thread as fast as two.
TEST(Rounds, WhatCannotBeIsMeasuredAgain) {
  int times = 0;
  const auto gives = [&](std::vector<double> shares) {
    times = 0;
    return [&times, shares] {
      return shares[std::min<size_t>(static_cast<size_t>(times++), shares.size() - 1)];
    };
  };
  EXPECT_EQ(believable_share(0.51, 1, 2, true, gives({9})), 0.51);
  EXPECT_EQ(times, 0) << "that can be";
  EXPECT_EQ(believable_share(0.99, 1, 2, true, gives({1.2, 0.55})), 0.55);
  EXPECT_EQ(times, 2);
  EXPECT_EQ(believable_share(1.3, 1, 2, true, gives({1.1})), 0.95) << "and ends";
  EXPECT_EQ(times, 3);
  EXPECT_EQ(believable_share(0.99, 1, 2, false, gives({9})), 0.99) << "memory may be one thread's";
  EXPECT_EQ(believable_share(0, 1, 4, true, gives({0.3})), 0.3) << "nothing was measured";
}

}  // namespace
}  // namespace plimsoll::measuring
