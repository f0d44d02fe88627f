#include "strategy/estimates.h"

#include <gtest/gtest.h>

#include "strategy/offload_candidates.h"
#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

std::vector<Strategy> offloaded() {
  const OffloadChoices choices{.places = {ir::MemorySpace::kHostPinned},
                               .splits = {{4, 1}, {2, 2}},
                               .may_recompute = true,
                               .num_blocks = 4};
  const OffloadCandidates candidates(choices);
  const OffloadAssignment host = offload_assignments(choices.places).front();
  std::vector<Strategy> list;
  for (const bool recompute_all : {false, true})
    for (const settings::BatchSplit& split : choices.splits)
      for (const int32_t steps : {0, 2, 7, 20})
        list.push_back(candidates.with_steps(candidates.resident(split, recompute_all, kSomeSlack),
                                             offload_orders()[0], host, steps));
  return list;
}

/// More strategies than programs are kept for, back and forth.
TEST(StrategyEstimatesTest, AreWhatEstimatesWithGraphsSay) {
  const SmallRun run({SmallRun::kOnDevice});
  PlanCache cache, other;
  CachedPlanner planner(run.scope(), cache), alone(run.scope(), other);
  StrategyEstimates estimate(planner);
  for (int turn = 0; turn < 2; ++turn)
    for (const Strategy& strategy : offloaded()) {
      const auto report = estimate(strategy);
      const auto written = alone.planner().estimate(strategy);
      ASSERT_TRUE(report && written);
      EXPECT_EQ(report->arena_bytes, written->report.arena_bytes);
      EXPECT_EQ(report->persistent_bytes, written->report.persistent_bytes);
      EXPECT_EQ(report->host_pinned_bytes, written->report.host_pinned_bytes);
      EXPECT_NEAR(report->seconds_estimated, written->report.seconds_estimated,
                  1e-9 * written->report.seconds_estimated);
    }
}

TEST(StrategyEstimatesTest, AreRememberedByTheCache) {
  const SmallRun run({SmallRun::kOnDevice});
  PlanCache cache;
  CachedPlanner planner(run.scope(), cache);
  const Strategy strategy = offloaded()[2];
  const auto first = StrategyEstimates(planner)(strategy);
  ASSERT_TRUE(first);
  ASSERT_NE(cache.find_estimate(strategy), nullptr);
  const auto second = StrategyEstimates(planner)(strategy);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->arena_bytes, first->arena_bytes);
  EXPECT_EQ(second->fits, first->fits);
}

TEST(StrategyEstimatesTest, WhereEachOpRunsTwiceGraphsAreWritten) {
  const SmallRun run({SmallRun::kOnDevice, "debug.verify_steps=1"});
  PlanCache cache;
  CachedPlanner planner(run.scope(), cache);
  EXPECT_FALSE(planner.planner().may_schedule());
  const auto report = StrategyEstimates(planner)(offloaded()[1]);
  ASSERT_TRUE(report);
  EXPECT_GT(report->arena_bytes, 0);
}

}  // namespace
}  // namespace plimsoll::strategy
