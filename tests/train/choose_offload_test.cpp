// Which rung of the ladder is taken.
#include "train/choose_offload.h"

#include <gtest/gtest.h>

namespace plimsoll::train {
namespace {

Planned planned(bool fits, int64_t arena) {
  Planned p;
  p.report.fits = fits;
  p.report.arena_bytes = arena;
  p.report.budgets = {{"memory.budget", planner::Bounded::kProcess, 100}};
  return p;
}

RunConfig automatic(const char* device) {
  RunConfig config;
  config.runtime.device = device;
  return config;
}

std::vector<OffloadCandidate> candidates(const char* device) {
  return offload_candidates(automatic(device), {}, {{8, 1}, {4, 2}, {2, 4}, {1, 8}});
}

TEST(OffloadCandidates, GoToTheHostFirstWhereThereIsOne) {
  EXPECT_EQ(candidates("cpu").size(), 4U * 4U * 2U + 1);
  const auto list = candidates("discrete");
  ASSERT_EQ(list.size(), 8U * 4U * 2U + 2);
  EXPECT_EQ(to_yaml_flow(list.front().offload), "{optimizer: host, masters: host}");
  EXPECT_EQ(list.front().split.micro_batch_size, 8);
  EXPECT_FALSE(list.front().thrifty);
  EXPECT_EQ(to_yaml_flow(list.back().offload),
            "{optimizer: disk, masters: disk, activations: disk, gradients: disk, parameters: disk}");
  EXPECT_EQ(list.back().split.micro_batch_size, 1);
  EXPECT_TRUE(list.back().thrifty);
  EXPECT_TRUE(list.back().on_demand);
}

TEST(OffloadCandidates, BesideACardAreOfTheHostAlone) {
  const auto list = candidates("cuda:1");
  ASSERT_EQ(list.size(), 4U * 4U * 2U + 1);
  for (const OffloadCandidate& c : list)
    for (const auto& [name, place] : c.offload.members) EXPECT_EQ(place.text, "host") << name;
}

TEST(OffloadCandidates, AreNoneWhereItIsNotThePlanners) {
  RunConfig config = automatic("cpu");
  EXPECT_TRUE(offload_candidates(config, {.purpose = Purpose::kEvaluate}, {{1, 1}}).empty());
  config.memory.offload = Tree::of(std::string("none"));
  EXPECT_TRUE(offload_candidates(config, {}, {{1, 1}}).empty());
}

TEST(OffloadCandidates, ComputeAgainAsTheSettingSays) {
  RunConfig config = automatic("cpu");
  config.memory.recompute.mode = RecomputeMode::kNone;
  for (const OffloadCandidate& c : offload_candidates(config, {}, {{1, 1}})) EXPECT_FALSE(c.thrifty);
}

class Choice : public testing::Test {
 protected:
  /// Arenas of the candidates; what is at most 100 fits.
  Result<Planned> choose(Planned without, std::vector<int64_t> arenas) {
    const std::vector<OffloadCandidate> list(arenas.size());
    size_t next = 0;
    return choose_offload(std::move(without), list, [&](const OffloadCandidate&) {
      asked_ += std::to_string(next) + " ";
      const int64_t arena = arenas[next++];
      return Result<Planned>(planned(arena <= 100, arena));
    });
  }
  std::string asked_;
};

TEST_F(Choice, AsksForNothingWhereItFits) {
  EXPECT_EQ(choose(planned(true, 90), {1, 1})->report.arena_bytes, 90);
  EXPECT_EQ(asked_, "");
}

TEST_F(Choice, TakesTheFirstThatFits) {
  EXPECT_EQ(choose(planned(false, 500), {300, 80, 60})->report.arena_bytes, 80);
  EXPECT_EQ(asked_, "0 1 ");
}

TEST_F(Choice, NamesTheLeastWhereNothingFits) {
  EXPECT_EQ(choose(planned(false, 500), {400, 200, 250})->report.arena_bytes, 200);
  EXPECT_EQ(choose(planned(false, 150), {400, 300})->report.arena_bytes, 150);
}

}  // namespace
}  // namespace plimsoll::train
