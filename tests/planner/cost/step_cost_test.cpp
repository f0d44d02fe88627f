#include "planner/cost/step_cost.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_target.h"
#include "planner/preset.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {
namespace {

StepCost cost_with(bool cheap, passes::RecomputePolicy policy = {}) {
  const cpu::CpuTarget target(2);
  const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  StepOptions o;
  o.task = task.get();
  o.sequence_length = 128;
  o.pipeline.recompute_cheap = cheap;
  o.pipeline.recompute = std::move(policy);
  auto built = build_training_programs(*preset("smollm-135m"), o, target);
  EXPECT_TRUE(built.ok());
  return built->cost;
}

/// What auto rebuilds from kept values costs no time by the estimate, and is told in operations.
TEST(StepCost, WhatIsNearlyFreeTakesNoTime) {
  using Kind = passes::RecomputePolicy::Kind;
  const StepCost none = cost_with(false), cheap = cost_with(true), mlp = cost_with(true, {Kind::kMlp});
  EXPECT_EQ(none.recompute_flops, 0);
  EXPECT_GT(cheap.recompute_flops, 0);
  EXPECT_EQ(cheap.seconds.total(), none.seconds.total());
  EXPECT_EQ(cheap.bytes, none.bytes);
  EXPECT_EQ(cheap.flops, none.flops);
  EXPECT_GT(mlp.seconds.total(), cheap.seconds.total()) << "products take time";
  EXPECT_GT(mlp.bytes, none.bytes);
}

}  // namespace
}  // namespace plimsoll::planner
