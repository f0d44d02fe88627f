#include "strategy/cached_planner.h"

#include <gtest/gtest.h>

#include "planner/recompute/recompute_fit.h"
#include "planner/report/budget.h"
#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

TEST(CachedPlannerTest, PlansEachStrategyOnce) {
  SmallRun run;
  PlanCache cache;
  CachedPlanner planner(run.scope(), cache);
  const auto first = planner.plan(of_split(2, 2));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->programs.session.programs.empty());
  run.set_more_bytes(-SmallRun::kEndless);
  const auto second = planner.plan(of_split(2, 2));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->programs.session.programs.empty()) << "the cache keeps none";
  EXPECT_EQ(second->report.arena_bytes, first->report.arena_bytes);
  EXPECT_NE(second->facts, nullptr);
  EXPECT_FALSE(second->report.fits) << "the budgets are those of now";
}

TEST(CachedPlannerTest, OnePlannerLeavesToTheNextWhatItFound) {
  const SmallRun run;
  PlanCache cache;
  ASSERT_TRUE(CachedPlanner(run.scope(), cache).plan(of_split(2, 2)));
  PlanCache copy = cache;
  const auto again = CachedPlanner(run.scope(), copy).plan(of_split(2, 2));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->programs.session.programs.empty());
}

TEST(CachedPlannerTest, AnEstimateWillDoForWhatExceedsTheGoal) {
  const SmallRun run({"memory.budget=1MiB"});
  PlanCache cache;
  CachedPlanner planner(run.scope(), cache);
  const Strategy strategy = of_split(2, 2);
  const auto estimated = planner.plan_within(strategy, 0);
  ASSERT_TRUE(estimated);
  EXPECT_GT(planner::excess_bytes(estimated->report), 0);
  EXPECT_EQ(cache.find(strategy), nullptr) << "it was not planned";
  EXPECT_NE(estimated->facts, nullptr);
  const int64_t goal = planner::excess_bytes(estimated->report);
  const auto planned = planner.plan_within(strategy, goal);
  ASSERT_TRUE(planned);
  EXPECT_NE(cache.find(strategy), nullptr) << "its estimate does not exceed the goal";
  const auto any = CachedPlanner(run.scope(), cache).plan_within(of_split(1, 4), planner::kAnyExcess);
  ASSERT_TRUE(any);
  EXPECT_EQ(cache.find_estimate(of_split(1, 4)), nullptr);
}

TEST(CachedPlannerTest, APlanBehindItsEstimateIsThePlan) {
  const SmallRun run;
  PlanCache cache, other;
  const auto within = CachedPlanner(run.scope(), cache).plan_within(of_split(1, 4), 0);
  const auto plain = CachedPlanner(run.scope(), other).plan(of_split(1, 4));
  ASSERT_TRUE(within && plain);
  EXPECT_EQ(within->report.process_peak_bytes(), plain->report.process_peak_bytes());
  EXPECT_EQ(within->report.seconds_estimated, plain->report.seconds_estimated);
  EXPECT_FALSE(within->programs.session.programs.empty());
}

TEST(CachedPlannerTest, EstimatesWithFactsAreKeptBesideThoseWithout) {
  const SmallRun run;
  PlanCache cache;
  CachedPlanner planner(run.scope(), cache);
  cache.add_estimate({.strategy = of_split(4, 1), .programs = {}, .report = {}});
  const auto estimated = planner.estimate_with_facts(of_split(4, 1));
  ASSERT_TRUE(estimated);
  EXPECT_NE(estimated->facts, nullptr);
  EXPECT_GT(estimated->report.arena_bytes, 0);
  EXPECT_NE(cache.find_estimate(of_split(4, 1), /*with_facts=*/true), nullptr);
}

}  // namespace
}  // namespace plimsoll::strategy
