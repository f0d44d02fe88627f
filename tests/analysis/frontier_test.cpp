#include "analysis/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "part_of.h"
#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

using testing::HasSubstr;

constexpr const char* kFrontierRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 128, "
    "num_hidden_layers: 3, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 2, max_steps: 2}\nruntime: {threads: 1}\n"
    "memory: {budget: 1GiB}\n";

struct FrontierCase {
  explicit FrontierCase(std::vector<std::string> overrides = {}, const char* instruction_set = "avx2")
      : rates(planner::generic_cpu(instruction_set)) {
    overrides.push_back(rates.setting());
    config = *settings::parse_run_config(kFrontierRun, "run.yaml", overrides);
    target = strategy::make_target(config, 1);
  }
  [[nodiscard]] Frontier frontier() const {
    const auto base = strategy::prepare(config, *target, {});
    EXPECT_TRUE(base);
    auto found = plan_frontier(strategy::Variants(config, *target, {}), *base);
    EXPECT_TRUE(found);
    return std::move(*found);
  }
  strategy::RatesFile rates;
  settings::RunConfig config;
  std::unique_ptr<runtime::Target> target;
};

class FrontierEachInstructionSet : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Frontier, FrontierEachInstructionSet,
                         testing::ValuesIn(strategy::some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

TEST_P(FrontierEachInstructionSet, EachPointIsWhatItsBudgetGives) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{},
        {"runtime.device=discrete", "runtime.discrete={memory: 1GiB, copy_bandwidth: 500MB/s}"},
        {"runtime.device=discrete", "runtime.discrete={memory: 1GiB, copy_bandwidth: 50MB/s}"}}) {
    // Where nothing is offloaded under all of them; that takes longer to plan.
    if (!overrides.empty() && GetParam() != std::string("avx2")) continue;
    const FrontierCase c(overrides, GetParam());
    const Frontier frontier = c.frontier();
    ASSERT_GE(frontier.points.size(), 3u);
    for (size_t i = 0; i < frontier.points.size(); ++i) {
      if (!in_part(i, 4)) continue;
      const FrontierPoint& point = frontier.points[i];
      const auto config =
          strategy::with_settings(c.config, {{frontier.budget, std::to_string(point.budget_bytes)}});
      const auto alone = strategy::prepare(*config, *c.target, {});
      ASSERT_TRUE(alone);
      EXPECT_TRUE(alone->report.fits);
      EXPECT_EQ(main_peak_bytes(alone->report), point.peak_bytes) << point.budget_bytes;
      EXPECT_EQ(alone->report.seconds_estimated, point.report.seconds_estimated);
      EXPECT_EQ(io::to_json(planner::choices_event(alone->report)),
                io::to_json(planner::choices_event(point.report)));
    }
  }
}

TEST_P(FrontierEachInstructionSet, NoPointIsBeatenAndTheFirstIsTheLeast) {
  const FrontierCase c({}, GetParam());
  const Frontier frontier = c.frontier();
  for (size_t i = 1; i < frontier.points.size(); ++i) {
    const FrontierPoint &less = frontier.points[i - 1], &more = frontier.points[i];
    EXPECT_LT(less.budget_bytes, more.budget_bytes);
    EXPECT_LT(less.peak_bytes, more.peak_bytes);
    EXPECT_GT(less.report.seconds_estimated, more.report.seconds_estimated);
  }
  const int64_t least = frontier.points.front().budget_bytes;
  const auto below = strategy::with_settings(c.config, {{"memory.budget", std::to_string(least - 1)}});
  EXPECT_FALSE(strategy::prepare(*below, *c.target, {})->report.fits);
  ASSERT_TRUE(frontier.chosen);
  EXPECT_EQ(frontier.chosen->peak_bytes, frontier.points.back().peak_bytes);
  // Nor is the run itself, under whichever of these budgets.
  for (size_t i = 0; i < frontier.points.size(); ++i) {
    if (!in_part(i, 4)) continue;
    const FrontierPoint& point = frontier.points[i];
    const auto config =
        strategy::with_settings(c.config, {{"memory.budget", std::to_string(point.budget_bytes + 4096)}});
    const auto run = strategy::prepare(*config, *c.target, {});
    ASSERT_TRUE(run);
    EXPECT_LE(run->report.seconds_estimated, point.report.seconds_estimated) << point.budget_bytes;
  }
  // Nothing that people set by hand is above and to the left of all points.
  ASSERT_EQ(frontier.policies.size(), 8u);
  for (const FixedPolicy& policy : frontier.policies) {
    const auto beats = [&](const FrontierPoint& p) {
      return p.peak_bytes <= policy.peak_bytes && p.report.seconds_estimated <= policy.seconds;
    };
    EXPECT_TRUE(std::ranges::any_of(frontier.points, beats)) << policy.name;
  }
}

TEST(Frontier, ARunThatDoesNotFitHasOneAllTheSame) {
  const Frontier frontier = FrontierCase({"memory.budget=1MiB"}).frontier();
  EXPECT_FALSE(frontier.chosen);
  EXPECT_FALSE(frontier.points.empty());
  EXPECT_THAT(frontier_table(frontier), HasSubstr("does not fit"));
  EXPECT_TRUE(frontier_event(frontier).find("chosen")->is_null());
}

TEST(Frontier, IsDeterministicInTextAndPicture) {
  const Frontier a = FrontierCase().frontier(), b = FrontierCase().frontier();
  EXPECT_EQ(io::to_json(frontier_event(a)), io::to_json(frontier_event(b)));
  EXPECT_EQ(frontier_svg(a), frontier_svg(b));
  EXPECT_THAT(frontier_svg(a), HasSubstr("estimated seconds per step"));
  EXPECT_THAT(frontier_svg(a), HasSubstr("this run"));
}

}  // namespace
}  // namespace plimsoll::analysis
