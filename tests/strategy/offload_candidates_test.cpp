#include "strategy/offload_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

using ir::MemorySpace;
using passes::kAllBlocks;
using passes::OffloadClass;

const OffloadChoices kChoices = {.places = {MemorySpace::kHostPinned, MemorySpace::kDisk},
                                 .splits = {{4, 1}},
                                 .may_recompute = true,
                                 .num_blocks = 10};

TEST(OffloadCandidatesTest, EachOrderHasEachClassOnce) {
  for (const auto& order : offload_orders()) {
    std::multiset<OffloadClass> classes;
    for (const OffloadGroup& group : order) classes.insert(group.begin(), group.end());
    EXPECT_EQ(classes.size(), passes::kNumOffloadClasses);
    EXPECT_EQ(std::set<OffloadClass>(classes.begin(), classes.end()).size(), classes.size());
  }
}

TEST(OffloadCandidatesTest, TheSlowerMemoryFirstTakesWhatMovesLeast) {
  const auto assignments = offload_assignments(kChoices.places);
  ASSERT_EQ(assignments.size(), 3U);
  const auto at = [](const OffloadAssignment& a, OffloadClass c) { return a[static_cast<size_t>(c)]; };
  EXPECT_EQ(at(assignments[0], OffloadClass::kOptimizer), MemorySpace::kHostPinned);
  EXPECT_EQ(at(assignments[1], OffloadClass::kOptimizer), MemorySpace::kDisk);
  EXPECT_EQ(at(assignments[1], OffloadClass::kActivations), MemorySpace::kHostPinned);
  EXPECT_EQ(at(assignments[2], OffloadClass::kActivations), MemorySpace::kDisk);
}

TEST(OffloadCandidatesTest, StepsGoFromNothingToAll) {
  const OffloadCandidates candidates(kChoices);
  const auto& order = offload_orders()[0];
  const OffloadAssignment host = offload_assignments(kChoices.places).front();
  const Strategy resident = candidates.resident({4, 1}, false, kNoSlack);
  EXPECT_FALSE(resident.offload.any());
  EXPECT_EQ(candidates.with_steps(resident, order, host, 0), resident);
  const int32_t all = candidates.num_steps(order);
  EXPECT_EQ(candidates.with_steps(resident, order, host, all), candidates.with_all(resident, host));
  const Strategy three = candidates.with_steps(resident, order, host, 3);
  EXPECT_EQ(three.offload.blocks[static_cast<size_t>(OffloadClass::kOptimizer)], 3);
  EXPECT_EQ(three.offload.blocks[static_cast<size_t>(OffloadClass::kMasters)], 3) << "they go together";
  EXPECT_EQ(three.offload.space(OffloadClass::kActivations), MemorySpace::kDevice);
  const Strategy next = candidates.with_steps(resident, order, host, kChoices.num_blocks + 3);
  EXPECT_EQ(next.offload.blocks[static_cast<size_t>(OffloadClass::kOptimizer)], kAllBlocks);
  EXPECT_EQ(next.offload.blocks[static_cast<size_t>(OffloadClass::kActivations)], 2);
}

TEST(OffloadCandidatesTest, MoreIsOffloadedUntilAllIs) {
  const OffloadCandidates candidates(kChoices);
  const OffloadAssignment host = offload_assignments(kChoices.places).front();
  Strategy strategy =
      candidates.with_steps(candidates.resident({4, 1}, false, kSomeSlack), offload_orders()[0], host, 3);
  ASSERT_TRUE(candidates.offload_more(strategy, 0));
  EXPECT_EQ(strategy.offload.blocks[static_cast<size_t>(OffloadClass::kOptimizer)], 4);
  ASSERT_TRUE(candidates.offload_more(strategy, 3));
  EXPECT_EQ(strategy.offload.blocks[static_cast<size_t>(OffloadClass::kOptimizer)], kAllBlocks);
  ASSERT_TRUE(candidates.offload_more(strategy, 0)) << "room for copies is given up last";
  EXPECT_EQ(strategy.offload.slack_part, kNoSlack);
  EXPECT_FALSE(candidates.offload_more(strategy, 0));
}

TEST(OffloadCandidatesTest, RecomputationIsTriedLast) {
  EXPECT_THAT(OffloadCandidates(kChoices).recomputations(), testing::ElementsAre(false, true));
  OffloadChoices fixed = kChoices;
  fixed.may_recompute = false;
  EXPECT_THAT(OffloadCandidates(fixed).recomputations(), testing::ElementsAre(false));
}

TEST(OffloadChoices, AreOfThePlacesThatTheDeviceHas) {
  const auto choices = [](const std::string& device, PrepareOptions options, const std::string& more) {
    auto config =
        settings::parse_run_config("model: {preset: gpt2}\ndata: {train: a.npy}\ntraining: {max_steps: 20}\n",
                                   "run.yaml", std::vector<std::string>{"runtime.device=" + device, more});
    EXPECT_TRUE(config);
    config->model.overrides = io::Tree::map();
    auto prepared = prepare(*config, *make_target(*config, 1), {.request = PlanRequest::kReport});
    EXPECT_TRUE(prepared);
    const auto target = make_target(*config, 1);
    return offload_choices({*config, *prepared, *target, options}, {{1, 1}});
  };
  using testing::ElementsAre;
  const std::string automatic = "memory.offload=auto";
  EXPECT_THAT(choices("cpu", {}, automatic).places, ElementsAre(MemorySpace::kDisk));
  EXPECT_THAT(choices("discrete", {}, automatic).places,
              ElementsAre(MemorySpace::kHostPinned, MemorySpace::kDisk));
  EXPECT_EQ(choices("cpu", {}, automatic).num_blocks, 12);
  EXPECT_TRUE(choices("cpu", {}, automatic).may_recompute);
  EXPECT_FALSE(choices("cpu", {}, "memory.recompute=none").may_recompute);
  EXPECT_TRUE(choices("cpu", {}, "memory.offload=none").places.empty());
  EXPECT_TRUE(choices("cpu", {.purpose = Purpose::kEvaluate}, automatic).places.empty());
}

}  // namespace
}  // namespace plimsoll::strategy
