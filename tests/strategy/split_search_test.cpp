#include "strategy/split_search.h"

#include <gtest/gtest.h>

#include <limits>

#include "planner/report/budget.h"
#include "planner/report/why.h"
#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

const std::string kResident = "memory.offload=none";

SmallRun with_budget(int64_t bytes, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {kResident, "memory.budget=" + std::to_string(bytes)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return SmallRun(overrides);
}

PlannedStep search(const SmallRun& run) {
  PlanCache cache;
  auto found = SplitSearch(run.scope(), cache)();
  EXPECT_TRUE(found) << (found ? "" : found.error().message());
  return std::move(*found);
}

/// Each budget by itself, from the least to that of which more is not used.
TEST(SplitSearchTest, MoreMemoryIsNotSlower) {
  const int64_t least = search(with_budget(1)).report.process_peak_bytes();
  const int64_t most = search(with_budget(SmallRun::kEndless)).report.process_peak_bytes();
  ASSERT_LT(least, most);
  constexpr int64_t kBudgets = 12;
  double last = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i <= kBudgets; ++i) {
    const int64_t budget = least + (most - least) * i / kBudgets;
    const PlannedStep chosen = search(with_budget(budget));
    ASSERT_TRUE(chosen.report.fits) << budget;
    EXPECT_LE(chosen.report.process_peak_bytes(), budget);
    EXPECT_LE(chosen.report.seconds_estimated, last * (1 + 1e-9)) << budget;
    last = chosen.report.seconds_estimated;
  }
}

TEST(SplitSearchTest, WhereNothingFitsThePlanThatNeedsLeast) {
  const PlannedStep least = search(with_budget(1));
  EXPECT_FALSE(least.report.fits);
  const int64_t bytes = least.report.process_peak_bytes();
  EXPECT_TRUE(search(with_budget(bytes)).report.fits);
  const PlannedStep less = search(with_budget(bytes - 1));
  EXPECT_FALSE(less.report.fits);
  EXPECT_EQ(less.report.process_peak_bytes(), bytes);
}

TEST(SplitSearchTest, TheChosenPlanIsAmongThoseConsidered) {
  const SmallRun run = with_budget(search(with_budget(1)).report.process_peak_bytes() * 11 / 10);
  PlanCache cache;
  SplitSearch split_search(run.scope(), cache);
  const auto chosen = split_search();
  ASSERT_TRUE(chosen);
  const planner::Alternative one = planner::alternative_of(chosen->report);
  EXPECT_NE(std::ranges::find(split_search.considered(), one), split_search.considered().end());
  for (const planner::Alternative& other : split_search.considered()) {
    if (other.excess_bytes <= 0) {
      EXPECT_GE(other.seconds, chosen->report.seconds_estimated) << "it fits and is faster";
    }
  }
  EXPECT_LE(split_search.least_seconds(), chosen->report.seconds_estimated);
}

TEST(SplitSearchTest, ASplitThatIsGivenIsTaken) {
  const PlannedStep chosen = search(with_budget(SmallRun::kEndless, {"training.micro_batch_size=2"}));
  EXPECT_EQ(chosen.strategy.split, (settings::BatchSplit{2, 2}));
  EXPECT_TRUE(chosen.strategy.recomputed.empty());
}

TEST(SplitSearchTest, AnEvaluationTakesTheLargestMicroBatchThatFits) {
  const auto evaluate = [](int64_t budget) {
    const SmallRun run({kResident, "memory.budget=" + std::to_string(budget)},
                       {.purpose = Purpose::kEvaluate});
    return search(run);
  };
  const PlannedStep whole = evaluate(SmallRun::kEndless);
  EXPECT_EQ(whole.strategy.split.micro_batch_size, 4);
  const PlannedStep smaller = evaluate(whole.report.process_peak_bytes() - 1);
  ASSERT_TRUE(smaller.report.fits);
  EXPECT_LE(smaller.report.process_peak_bytes(), whole.report.process_peak_bytes() - 1);
}

/// What was planned for one budget changes nothing of the next.
TEST(SplitSearchTest, ACacheOfOtherBudgetsChangesNoPlan) {
  const int64_t least = search(with_budget(1)).report.process_peak_bytes();
  PlanCache cache;
  for (const int64_t budget : {SmallRun::kEndless, least, least * 12 / 10, int64_t{1}, least}) {
    const SmallRun run = with_budget(budget);
    const auto beside = SplitSearch(run.scope(), cache)();
    ASSERT_TRUE(beside);
    const PlannedStep alone = search(run);
    EXPECT_EQ(beside->strategy, alone.strategy) << budget;
    EXPECT_EQ(beside->report.process_peak_bytes(), alone.report.process_peak_bytes()) << budget;
  }
}

}  // namespace
}  // namespace plimsoll::strategy
