#include "strategy/plan_strategy.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/temporary_folder.h"
#include "planner/report/budget.h"
#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

std::vector<Strategy> some_strategies() {
  Strategy recomputes = of_split(2, 2), chunks = of_split(4, 1);
  recomputes.recompute_all = true;
  chunks.chunk_tokens = 64;
  return {of_split(4, 1), of_split(1, 4), recomputes, chunks};
}

TEST(StrategyPlannerTest, AnEstimateIsThePlanButForItsPacking) {
  const SmallRun run;
  planner::ProgramCache programs;
  const StrategyPlanner planner(run.scope(), programs);
  for (const Strategy& strategy : some_strategies()) {
    const auto estimated = planner.estimate(strategy), planned = planner.plan(strategy);
    ASSERT_TRUE(estimated && planned);
    const auto arena = static_cast<double>(planned->report.arena_bytes);
    EXPECT_NEAR(static_cast<double>(estimated->report.arena_bytes), arena, 0.02 * arena);
    EXPECT_LE(estimated->report.persistent_bytes, planned->report.persistent_bytes);
    EXPECT_NEAR(estimated->report.seconds_estimated, planned->report.seconds_estimated,
                1e-9 * planned->report.seconds_estimated);
    EXPECT_EQ(planned->strategy, strategy);
  }
}

TEST(StrategyPlannerTest, ProgramsOfAnEstimateMakeTheSamePlan) {
  const SmallRun run;
  for (const Strategy& strategy : some_strategies()) {
    planner::ProgramCache shared, alone;
    const StrategyPlanner planner(run.scope(), shared);
    auto estimated = planner.estimate(strategy);
    ASSERT_TRUE(estimated);
    const auto from_it = planner.plan(strategy, std::move(estimated->programs.session.programs));
    const auto anew = StrategyPlanner(run.scope(), alone).plan(strategy);
    ASSERT_TRUE(from_it && anew);
    ASSERT_EQ(from_it->programs.session.programs.size(), anew->programs.session.programs.size());
    for (size_t i = 0; i < anew->programs.session.programs.size(); ++i)
      EXPECT_EQ(from_it->programs.session.programs[i].plan.offsets,
                anew->programs.session.programs[i].plan.offsets);
    EXPECT_EQ(from_it->report.process_peak_bytes(), anew->report.process_peak_bytes());
  }
}

TEST(StrategyPlannerTest, LessMemoryTakesMoreTime) {
  const SmallRun run;
  planner::ProgramCache programs;
  const StrategyPlanner planner(run.scope(), programs);
  const auto whole = planner.plan(of_split(4, 1)), parts = planner.plan(of_split(1, 4));
  Strategy strategy = of_split(1, 4);
  strategy.recompute_all = true;
  const auto recomputed = planner.plan(strategy);
  ASSERT_TRUE(whole && parts && recomputed);
  EXPECT_LT(parts->report.arena_bytes, whole->report.arena_bytes);
  EXPECT_LT(recomputed->report.arena_bytes, parts->report.arena_bytes);
  EXPECT_GT(recomputed->report.seconds_estimated, parts->report.seconds_estimated);
  EXPECT_EQ(whole->report.units, parts->report.units);
}

TEST(StrategyPlannerTest, ReportsAreComparedWithTheBudgetsAsTheyAre) {
  SmallRun run;
  planner::ProgramCache programs;
  const StrategyPlanner planner(run.scope(), programs);
  auto planned = planner.plan(of_split(4, 1));
  ASSERT_TRUE(planned);
  EXPECT_TRUE(planned->report.fits);
  const int64_t left = -planner::excess_bytes(planned->report);
  for (const int64_t more : {-left, -left - 1}) {
    run.set_more_bytes(more);
    planner.compare_with_budgets(planned->strategy, planned->report);
    EXPECT_EQ(planned->report.fits, more == -left);
  }
}

TEST(StrategyPlannerTest, FactsSayWhatSmallerChunksLeave) {
  const SmallRun run;
  planner::ProgramCache programs;
  const StrategyPlanner planner(run.scope(), programs);
  const auto planned = planner.plan(of_split(4, 1));
  ASSERT_TRUE(planned);
  const auto facts = planner.facts_of(*planned);
  ASSERT_NE(facts, nullptr);
  EXPECT_GE(facts->arena_bytes, facts->alive_bytes);
  EXPECT_EQ(facts->chain.blocks.size(), 4U);
  const SmallRun evaluation({}, {.purpose = Purpose::kEvaluate});
  planner::ProgramCache others;
  const StrategyPlanner evaluator(evaluation.scope(), others);
  const auto evaluated = evaluator.plan(of_split(4, 1));
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluator.facts_of(*evaluated), nullptr) << "there is no backward pass";
}

TEST(StrategyPlannerTest, LeavesTheTextOfThePlanThatItMakes) {
  const io::TemporaryFolder folder;
  const SmallRun run({}, {.dump_ir = folder.path("ir")});
  planner::ProgramCache programs;
  const StrategyPlanner planner(run.scope(), programs);
  ASSERT_TRUE(planner.plan(of_split(2, 2)));
  const auto shown = planner.plan_with_text(of_split(4, 1));
  ASSERT_TRUE(shown);
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("ir/step")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("ir/micro_next"))) << "plan leaves no text";
}

}  // namespace
}  // namespace plimsoll::strategy
