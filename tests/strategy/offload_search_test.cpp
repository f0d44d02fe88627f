// What is offloaded: by estimates that the tests make up, and against whole classes one after another on real
// plans.
#include "strategy/offload_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "planner/report/budget.h"
#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

using ir::MemorySpace;
using passes::kAllBlocks;
using passes::OffloadClass;

constexpr int32_t kBlocks = 10;

OffloadChoices some_choices() {
  return {.places = {MemorySpace::kHostPinned, MemorySpace::kDisk},
          .splits = {{4, 1}, {2, 2}, {1, 4}},
          .may_recompute = true,
          .num_blocks = kBlocks};
}

/// Each class has 10 bytes a block and 20 outside of blocks, activations 10 a block and sequence, half of
/// that where all is computed again. Seconds are what is moved, and more for the disk and what is computed
/// again.
struct Reckoning {
  /// `packs_worse` is what a plan that may end above its bound takes more than its estimate, `stays` what no
  /// class has; a twentieth less of it where all is computed again.
  int64_t device = 0, host = 1 << 20, packs_worse = 0, stays = 0;
  bool has_room_for_copies = false;  ///< early ones need no more
  int64_t estimated_above =
      0;                  ///< what an estimate takes more than what is alive, and the least plan does not
  bool scatters = false;  ///< seconds, by up to a tenth
  int64_t blocks = kBlocks;
  double kernels = 0;  ///< so many seconds more, beside which the others are waiting
  std::vector<Strategy> planned = {}, estimated = {};

  [[nodiscard]] planner::PlanReport report(const Strategy& strategy, int64_t more = 0) const {
    planner::PlanReport r;
    r.device_is_process = false;
    r.arena_bytes = stays - (strategy.recompute_all ? stays / 20 : 0);
    for (size_t c = 0; c < passes::kNumOffloadClasses; ++c) {
      const bool activations = static_cast<OffloadClass>(c) == OffloadClass::kActivations;
      const int64_t block =
          !activations ? 10 : 10 * strategy.split.micro_batch_size / (strategy.recompute_all ? 2 : 1);
      const int64_t outside = activations ? 0 : 20;
      int64_t moved = 0;
      if (strategy.offload.spaces[c] != MemorySpace::kDevice)
        moved = strategy.offload.blocks[c] == kAllBlocks ? blocks * block + outside
                                                         : strategy.offload.blocks[c] * block;
      r.arena_bytes += blocks * block + outside - moved;
      (strategy.offload.spaces[c] == MemorySpace::kDisk ? r.disk_bytes : r.host_pinned_bytes) += moved;
      r.seconds_estimated +=
          static_cast<double>(moved) * (strategy.offload.spaces[c] == MemorySpace::kDisk ? 10
                                        : activations                                    ? 1.5
                                                                                         : 1);
    }
    if (strategy.offload.slack_part > 0 && !has_room_for_copies)
      r.arena_bytes += r.arena_bytes / strategy.offload.slack_part;
    if (strategy.offload.slack_part > 0) r.seconds_estimated *= 0.75;
    r.arena_bytes += more;
    if (scatters) {
      const int64_t moved = r.host_pinned_bytes + r.disk_bytes;
      r.seconds_estimated *= 1 + static_cast<double>(moved * 7919 % 101) / 1000;
    }
    r.seconds_estimated += strategy.recompute_all ? 1000 : 0;
    if (kernels > 0)
      r.parts.parts[static_cast<size_t>(planner::Part::kCopies)] =
          std::exchange(r.seconds_estimated, kernels + r.seconds_estimated);
    r.budgets = {{"memory.device_budget", planner::Bounded::kDevice, device},
                 {"memory.host_budget", planner::Bounded::kHost, host}};
    r.fits = planner::excess_bytes(r) <= 0;
    return r;
  }

  PlannedStep choose(const OffloadChoices& choices = some_choices()) {
    auto planned_step = try_choose(choices);
    EXPECT_TRUE(planned_step);
    return std::move(*planned_step);
  }
  Result<PlannedStep> try_choose(const OffloadChoices& choices) {
    return choose_offload(
        choices,
        [&](const Strategy& strategy) {
          if (std::ranges::find(estimated, strategy) == estimated.end()) estimated.push_back(strategy);
          planner::PlanReport estimate = report(strategy, estimated_above);
          if (const int64_t alive = estimate.arena_bytes - estimated_above; alive > 0)
            estimate.offset_lower_bound_ratio =
                static_cast<double>(estimate.arena_bytes) / static_cast<double>(alive);
          return Result<planner::PlanReport>(std::move(estimate));
        },
        [&](const Strategy& strategy) {
          planned.push_back(strategy);
          return Result<PlannedStep>(
              PlannedStep{strategy, {}, report(strategy, strategy.tolerance > 0 ? packs_worse : 0)});
        });
  }
};

TEST(ChooseOffload, MovesAsFewLayersAsItTakes) {
  Reckoning r{.device = 800};
  const PlannedStep chosen = r.choose();
  EXPECT_TRUE(chosen.report.fits);
  EXPECT_TRUE(chosen.strategy.offload.any());
  EXPECT_FALSE(chosen.strategy.recompute_all);
  EXPECT_EQ(r.planned.size(), 1U) << "estimates told";
  // A layer less of anything does not fit.
  for (size_t c = 0; c < passes::kNumOffloadClasses; ++c) {
    if (chosen.strategy.offload.spaces[c] == MemorySpace::kDevice) continue;
    Strategy fewer = chosen.strategy;
    const bool is_optimizer = static_cast<OffloadClass>(c) == OffloadClass::kOptimizer ||
                              static_cast<OffloadClass>(c) == OffloadClass::kMasters;
    for (const size_t i : is_optimizer ? std::vector<size_t>{1, 2} : std::vector<size_t>{c}) {
      int32_t& blocks = fewer.offload.blocks[i];
      blocks = blocks == kAllBlocks ? kBlocks : blocks - 1;
      if (blocks == 0) fewer.offload.spaces[i] = MemorySpace::kDevice;
    }
    EXPECT_FALSE(r.report(fewer).fits) << passes::name(static_cast<OffloadClass>(c));
  }
}

TEST(ChooseOffload, NeverSlowerThanWholeClassesOneAfterTheOther) {
  for (int64_t device = 0; device <= 900; device += 20) {
    Reckoning r{.device = device};
    const PlannedStep chosen = r.choose();
    Strategy ladder{.split = chosen.strategy.split, .recompute_all = chosen.strategy.recompute_all};
    ladder.offload.num_blocks = kBlocks;
    for (const OffloadClass c : {OffloadClass::kOptimizer, OffloadClass::kMasters, OffloadClass::kActivations,
                                 OffloadClass::kGradients, OffloadClass::kParameters}) {
      ladder.offload.spaces[static_cast<size_t>(c)] = MemorySpace::kHostPinned;
      const planner::PlanReport rung = r.report(ladder);
      if (!rung.fits) continue;
      ASSERT_TRUE(chosen.report.fits) << device;
      EXPECT_LE(chosen.report.seconds_estimated, rung.seconds_estimated) << device;
    }
  }
}

TEST(ChooseOffload, WhatIsNoQuickerIsNotTaken) {
  Reckoning r{.device = 700, .kernels = 1};
  const double seconds = r.choose().report.seconds_estimated;
  OffloadChoices choices = some_choices();
  choices.most_seconds = 1.001 * seconds;
  EXPECT_EQ(r.choose(choices).report.seconds_estimated, seconds);
  choices.most_seconds = seconds;
  const auto none = r.try_choose(choices);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kDoesNotFit) << "nor is the least looked for";
}

TEST(ChooseOffload, MoreMemoryIsNeverSlower) {
  for (const bool has_room : {false, true}) {
    double last = std::numeric_limits<double>::infinity();
    for (int64_t device = 0; device <= 900; device += 3) {
      Reckoning r{.device = device, .has_room_for_copies = has_room, .kernels = 1};
      // Seconds that scatter, as waiting does: what moves more may wait less.
      r.scatters = true;
      const double seconds = r.choose().report.seconds_estimated;
      EXPECT_LE(seconds, last) << device;
      last = std::min(last, seconds);
    }
  }
}

TEST(ChooseOffload, TakesTheDiskOnlyWhereTheHostIsFull) {
  Reckoning enough{.device = 300};
  for (const MemorySpace space : enough.choose().strategy.offload.spaces)
    EXPECT_NE(space, MemorySpace::kDisk);
  Reckoning little{.device = 300, .host = 300};
  const PlannedStep mixed = little.choose();
  EXPECT_TRUE(mixed.report.fits);
  EXPECT_EQ(mixed.strategy.offload.space(OffloadClass::kOptimizer), MemorySpace::kDisk);
  EXPECT_EQ(mixed.strategy.offload.space(OffloadClass::kActivations), MemorySpace::kHostPinned);
  Reckoning none{.device = 300, .host = 0};
  for (const MemorySpace space : none.choose().strategy.offload.spaces)
    EXPECT_NE(space, MemorySpace::kHostPinned);
}

TEST(ChooseOffload, EstimatesFewStrategies) {
  Reckoning small{.device = 300}, large{.device = 1500};
  OffloadChoices choices = some_choices();
  small.choose(choices);
  EXPECT_LE(small.estimated.size(), 250U);
  choices.num_blocks = 80;
  large.blocks = 80;
  large.choose(choices);
  EXPECT_LE(large.estimated.size(), 150U);
}

TEST(ChooseOffload, MovesMoreWhereThePackingIsWorse) {
  Reckoning r{.device = 800, .packs_worse = 15};
  const PlannedStep chosen = r.choose();
  EXPECT_TRUE(chosen.report.fits);
  EXPECT_GT(r.planned.size(), 1U);
}

TEST(ChooseOffload, PlansTheLeastThatItNames) {
  OffloadChoices choices = some_choices();
  choices.places = {MemorySpace::kHostPinned};
  Reckoning nothing{.device = 0, .packs_worse = 10, .stays = 100};
  const int64_t least = nothing.choose(choices).report.arena_bytes;
  EXPECT_EQ(least, 95);
  Reckoning enough{.device = least, .packs_worse = 10, .stays = 100};
  EXPECT_TRUE(enough.choose(choices).report.fits) << "what was tried before packed worse";
}

TEST(ChooseOffload, CopiesEarlyAtTheLeastWhereThereIsRoom) {
  OffloadChoices choices = some_choices();
  choices.places = {MemorySpace::kHostPinned};
  Reckoning nothing{.device = 0, .packs_worse = 10, .stays = 100, .has_room_for_copies = true};
  const int64_t least = nothing.choose(choices).report.arena_bytes;
  for (const int64_t estimated_above : {0, 3}) {  // a plan packs closer than its estimate
    Reckoning enough = nothing;
    enough.device = least, enough.estimated_above = estimated_above;
    const PlannedStep chosen = enough.choose(choices);
    EXPECT_TRUE(chosen.report.fits);
    EXPECT_GT(chosen.strategy.offload.slack_part, 0);
  }
}

TEST(ChooseOffload, NamesTheLeastWhereNothingFits) {
  OffloadChoices choices = some_choices();
  Reckoning nothing{.device = -1};
  const PlannedStep least = nothing.choose(choices);
  EXPECT_FALSE(least.report.fits);
  EXPECT_EQ(least.strategy.split.micro_batch_size, 1);
  EXPECT_FALSE(least.strategy.recompute_all) << "needs as little without";
  EXPECT_EQ(least.report.arena_bytes, 0);
  choices.may_recompute = false;
  EXPECT_FALSE(nothing.choose(choices).strategy.recompute_all);
}

constexpr const char* kOffloadedRun =
    "model: {config: {model_type: llama, vocab_size: 256, hidden_size: 128, intermediate_size: 256, "
    "num_hidden_layers: 6, num_attention_heads: 4, num_key_value_heads: 4, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 4, max_steps: 2}\n"
    "runtime: {threads: 1, device: discrete}\nmemory: {budget: 4GiB}\n";

/// Under the built-in rates of each instruction set.
class ChooseOffloadOnRealPlans : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] planner::PlanReport plan_with(std::vector<std::string> overrides) const {
    overrides.push_back(rates_.setting());
    return plan_of(overrides);
  }

 private:
  static planner::PlanReport plan_of(const std::vector<std::string>& overrides);
  const RatesFile rates_ = RatesFile(planner::generic_cpu(GetParam()));
};
INSTANTIATE_TEST_SUITE_P(EachInstructionSet, ChooseOffloadOnRealPlans,
                         testing::ValuesIn(some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

planner::PlanReport ChooseOffloadOnRealPlans::plan_of(const std::vector<std::string>& overrides) {
  const auto config = settings::parse_run_config(kOffloadedRun, "run.yaml", overrides);
  EXPECT_TRUE(config);
  auto prepared = prepare(*config, *make_target(*config, 1), {});
  EXPECT_TRUE(prepared);
  return std::move(prepared->report);
}

/// Whole classes in the order that was once the only one, with each split and all or nothing computed again.
TEST_P(ChooseOffloadOnRealPlans, IsNoSlowerThanTheLadder) {
  const int64_t least = plan_with({"memory.device_budget=1"}).device_peak_bytes();
  const int64_t without = plan_with({"memory.device_budget=1", "memory.offload=none"}).device_peak_bytes();
  ASSERT_LT(least, without);
  for (const int64_t part : {1, 3}) {
    const int64_t bytes = least + (without - 1 - least) * part / 4;
    const std::string budget = "memory.device_budget=" + std::to_string(bytes);
    const planner::PlanReport chosen = plan_with({budget});
    ASSERT_TRUE(chosen.fits) << budget;
    EXPECT_LE(chosen.device_peak_bytes(), bytes);
    std::string classes;
    for (const std::string c : {"optimizer: host, masters: host", ", activations: host", ", gradients: host",
                                ", parameters: host"}) {
      classes += c;
      for (const std::string micro : {"4", "1"})
        for (const std::string recompute : {"none", "full"}) {
          const planner::PlanReport rung =
              plan_with({budget, "memory.offload={" + classes + "}", "training.micro_batch_size=" + micro,
                         "memory.recompute=" + recompute});
          if (!rung.fits) continue;
          EXPECT_LE(chosen.seconds_estimated, rung.seconds_estimated * 1.0001)
              << budget << ": " << classes << ", " << micro << ", " << recompute << "; chosen "
              << chosen.offload << ", " << chosen.micro_batch_size << ", " << chosen.recompute;
        }
    }
  }
}

/// What fits by computing again is not taken where moving it is quicker; over a slow link it is.
TEST_P(ChooseOffloadOnRealPlans, MovesRatherThanComputesAgainWhereThatIsQuicker) {
  const int64_t without = plan_with({"memory.device_budget=1", "memory.offload=none"}).device_peak_bytes();
  const std::string budget = "memory.device_budget=" + std::to_string(without + without / 100);
  for (const bool is_quick : {true, false}) {
    const std::string link = std::string("runtime.discrete={memory: 1GiB, copy_bandwidth: ") +
                             (is_quick ? "20GB/s" : "5MB/s") + "}";
    const planner::PlanReport alone = plan_with({budget, link, "memory.offload=none"});
    const planner::PlanReport chosen = plan_with({budget, link});
    ASSERT_TRUE(alone.fits && chosen.fits);
    EXPECT_EQ(chosen.offload != "none", is_quick) << chosen.offload;
    EXPECT_EQ(chosen.seconds_estimated < alone.seconds_estimated, is_quick);
    EXPECT_LE(chosen.seconds_estimated, alone.seconds_estimated);
  }
}

}  // namespace
}  // namespace plimsoll::strategy
