#include "planner/recompute/recompute_chain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/known_profiles.h"
#include "planner/preset.h"
#include "planner/programs/largest_backward.h"
#include "planner/small_plan.h"

namespace plimsoll::planner {
namespace {

/// Adapters share a constant of the first block, which is made where the last one's backward begins.
TEST(RecomputeChain, WhatIsAliveGrowsFromBlockToBlockWithAndWithoutAdapters) {
  for (const bool lora : {false, true}) {
    const TrainingPrograms programs = planned_small({.num_layers = 6, .lora = lora, .finds_gains = true});
    const passes::Program& program = *largest_backward(programs.session);
    const RecomputeChain chain =
        recompute_chain(program, programs.gains, {}, CostModel(generic_cpu("avx2"), 2));
    ASSERT_EQ(chain.blocks.size(), 6u);
    for (size_t i = 1; i < chain.blocks.size(); ++i)
      EXPECT_LT(chain.blocks[i - 1].needed_bytes, chain.blocks[i].needed_bytes) << i << " lora " << lora;
    EXPECT_LT(chain.blocks[0].needed_bytes, chain.needed_bytes / 2) << "lora " << lora;
  }
}

/// Blocks behind the last one that has parameters are counted as its.
TEST(RecomputeChain, BlocksBehindTheLastOneAreCountedAsTheLast) {
  const TrainingPrograms programs = planned_small({.num_layers = 6, .lora = false, .finds_gains = true});
  const passes::Program& program = *largest_backward(programs.session);
  const AliveByBlock all = alive_by_block(program, 6), few = alive_by_block(program, 4);
  ASSERT_EQ(few.blocks.size(), 4U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(few.blocks[i], all.blocks[i]) << i;
  EXPECT_GE(few.blocks[3], all.blocks[3]);
}

TrainingPrograms planned_smollm(passes::RecomputePolicy policy, bool finds_gains) {
  const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  StepOptions options;
  options.task = task.get();
  options.sequence_length = 256;
  options.finds_gains = finds_gains;
  options.pipeline.recompute = std::move(policy);
  auto programs = build_training_programs(*preset("smollm-135m"), options, cpu::CpuTarget(2));
  EXPECT_TRUE(programs.ok());
  return std::move(*programs);
}

/// The search reckons with the seconds that the plan's own estimate grows by.
TEST(RecomputeChain, ALayerCostsWhatThePlanSaysOfIt) {
  using Kind = passes::RecomputePolicy::Kind;
  const TrainingPrograms programs = planned_smollm({}, true);
  for (const char* layer : {"layers.3", "layers.3.mlp", "layers.3.self_attn"}) {
    const auto gain =
        std::ranges::find_if(programs.gains, [&](const LayerGain& g) { return g.unit.name == layer; });
    ASSERT_NE(gain, programs.gains.end()) << layer;
    const passes::RecomputePolicy policy{.kind = Kind::kLayers, .layers = {layer}};
    const double more = planned_smollm(policy, false).cost.seconds.total() - programs.cost.seconds.total();
    EXPECT_NEAR(gain->seconds, more, 0.1 * more) << layer;
  }
}

}  // namespace
}  // namespace plimsoll::planner
