#include "strategy/step_report.h"

#include <gtest/gtest.h>

#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

planner::PlanReport report(const SmallRun& run, const Strategy& strategy) {
  planner::ProgramCache programs;
  auto planned = StrategyPlanner(run.scope(), programs).plan(strategy);
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message());
  return std::move(planned->report);
}

Strategy offloaded(Strategy strategy, std::initializer_list<passes::OffloadClass> classes) {
  for (const passes::OffloadClass c : classes)
    strategy.offload.spaces[static_cast<size_t>(c)] = ir::MemorySpace::kHostPinned;
  return strategy;
}

TEST(StepReportTest, AStepHasTheSameWorkHoweverItIsSplit) {
  const SmallRun run;
  const planner::PlanReport whole = report(run, of_split(4, 1)), parts = report(run, of_split(1, 4));
  EXPECT_EQ(whole.units, 4 * 64);
  EXPECT_EQ(parts.units, whole.units);
  EXPECT_EQ(whole.grad_accum_steps, 1);
  EXPECT_EQ(parts.grad_accum_steps, 4);
  EXPECT_NEAR(parts.flops, whole.flops, 0.02 * whole.flops);
}

TEST(StepReportTest, UpdatesMoveOnceAStepAndParametersWithEachMicroBatch) {
  using enum passes::OffloadClass;
  const SmallRun run({SmallRun::kOnDevice, "memory.update_on_host=false"});
  const int64_t optimizer_2 = report(run, offloaded(of_split(2, 2), {kOptimizer})).offload_in_bytes;
  const int64_t optimizer_4 = report(run, offloaded(of_split(1, 4), {kOptimizer})).offload_in_bytes;
  EXPECT_GT(optimizer_2, 0);
  EXPECT_EQ(optimizer_4, optimizer_2);
  const int64_t weights_2 = report(run, offloaded(of_split(2, 2), {kParameters})).offload_in_bytes;
  const int64_t weights_4 = report(run, offloaded(of_split(1, 4), {kParameters})).offload_in_bytes;
  EXPECT_GT(weights_2, 0);
  EXPECT_GT(weights_4, weights_2 * 3 / 2);
  EXPECT_LE(weights_4, weights_2 * 2);
}

TEST(StepReportTest, AnEvaluationIsOneMicroBatch) {
  const SmallRun run({}, {.purpose = Purpose::kEvaluate});
  const planner::PlanReport evaluated = report(run, of_split(2, 2));
  EXPECT_EQ(evaluated.units, 2 * 64);
  EXPECT_EQ(evaluated.grad_accum_steps, 1);
  EXPECT_EQ(evaluated.offload_in_bytes, 0);
}

}  // namespace
}  // namespace plimsoll::strategy
