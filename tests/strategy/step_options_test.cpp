#include "strategy/step_options.h"

#include <gtest/gtest.h>

#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

planner::StepOptions options_of(const SmallRun& run, const Strategy& strategy, bool finds_least = true) {
  return step_options(run.scope(), strategy, strategy.offload, finds_least);
}

TEST(StepOptionsTest, SeveralMicroBatchesHaveAccumulators) {
  const SmallRun run;
  EXPECT_FALSE(options_of(run, of_split(4, 1)).accumulate);
  EXPECT_TRUE(options_of(run, of_split(2, 2)).accumulate);
  const SmallRun dumps({"debug.dump_dir=dumps"});
  EXPECT_TRUE(options_of(dumps, of_split(4, 1)).accumulate) << "gradients are dumped";
}

TEST(StepOptionsTest, CandidatesAreNotVerifiedPassByPass) {
  const SmallRun run;
  EXPECT_FALSE(options_of(run, of_split(4, 1)).pipeline.verify) << "it doubles the time of a search";
}

TEST(StepOptionsTest, AnEvaluationHasNeitherAccumulatorsNorUpdate) {
  const SmallRun run({}, {.purpose = Purpose::kEvaluate});
  const planner::StepOptions options = options_of(run, of_split(2, 2));
  EXPECT_FALSE(options.training || options.accumulate || options.finds_gains);
  EXPECT_TRUE(options.eval);
}

TEST(StepOptionsTest, GainsAreAskedForWhereThePlannerChooses) {
  const SmallRun automatic, full({"memory.recompute=full"});
  EXPECT_TRUE(options_of(automatic, of_split(4, 1)).finds_gains);
  EXPECT_FALSE(options_of(full, of_split(4, 1)).finds_gains);
  Strategy strategy = of_split(4, 1);
  strategy.recomputed = {"layers.0"};
  EXPECT_FALSE(options_of(automatic, strategy).finds_gains);
  strategy = of_split(4, 1);
  strategy.recompute_all = true;
  EXPECT_FALSE(options_of(automatic, strategy).finds_gains);
  EXPECT_EQ(recompute_of(settings::RunConfig(), strategy).mode, settings::RecomputeMode::kFull);
}

TEST(StepOptionsTest, APlanThatNeedNotBeTheLeastKnowsItsRoom) {
  const SmallRun run;
  EXPECT_FALSE(options_of(run, of_split(4, 1)).memory.room_bytes.has_value());
  ASSERT_TRUE(options_of(run, of_split(4, 1), /*finds_least=*/false).memory.room_bytes.has_value());
  EXPECT_LT(*options_of(run, of_split(4, 1), false).memory.room_bytes, int64_t{4} << 30);
}

}  // namespace
}  // namespace plimsoll::strategy
