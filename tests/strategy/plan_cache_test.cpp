#include "strategy/plan_cache.h"

#include <gtest/gtest.h>

#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

constexpr const char* kKnownRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 128, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 4, max_steps: 2}\nruntime: {threads: 1}\n";

std::string plan(const std::string& budget, const std::string& rates, PlanRequest request, PlanCache& cache) {
  const auto config = settings::parse_run_config(kKnownRun, "run.yaml",
                                                 std::vector<std::string>{"memory.budget=" + budget, rates});
  EXPECT_TRUE(config);
  auto prepared = prepare(*config, *make_target(*config, 1), {.request = request}, cache);
  EXPECT_TRUE(prepared);
  EXPECT_TRUE(request != PlanRequest::kPrograms || !prepared->programs.session.programs.empty()) << budget;
  prepared->report.planning_seconds = 0;
  prepared->report.disk = {};  // of a plan that is run
  return io::to_json(planner::plan_event(prepared->report));
}

/// What a budget gives does not depend on which were planned before it.
class PlanCacheEachInstructionSet : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(PlanCache, PlanCacheEachInstructionSet, testing::ValuesIn(some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

TEST_P(PlanCacheEachInstructionSet, LeaveEveryPlanAsItIs) {
  const RatesFile file(planner::generic_cpu(GetParam()));
  const std::string rates = file.setting();
  PlanCache cache;
  for (const char* budget : {"1GiB", "36MiB", "28MiB", "25MiB", "1MiB", "28MiB", "1GiB"}) {
    PlanCache empty;
    const std::string alone = plan(budget, rates, PlanRequest::kPrograms, empty);
    EXPECT_EQ(plan(budget, rates, PlanRequest::kPrograms, cache), alone) << budget;
    EXPECT_EQ(plan(budget, rates, PlanRequest::kReport, cache), alone) << budget;
  }
}

TEST(PlanCache, FindsAStrategyByAllThatItIs) {
  PlanCache cache;
  cache.add(
      PlannedStep{.strategy = {.split = {2, 2}, .recomputed = {"layers.0"}}, .programs = {}, .report = {}});
  EXPECT_NE(cache.find({.split = {2, 2}, .recomputed = {"layers.0"}}), nullptr);
  EXPECT_EQ(cache.find({.split = {2, 2}}), nullptr);
  EXPECT_EQ(cache.find({.split = {4, 1}, .recomputed = {"layers.0"}}), nullptr);
  EXPECT_EQ(cache.find({.split = {2, 2}, .recomputed = {"layers.0"}, .chunk_tokens = 256}), nullptr);
}

}  // namespace
}  // namespace plimsoll::strategy
