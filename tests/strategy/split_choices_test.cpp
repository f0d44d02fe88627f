#include "strategy/split_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy/small_run.h"

namespace plimsoll::strategy {
namespace {

using testing::ElementsAre;

std::vector<int64_t> sizes(const std::vector<settings::BatchSplit>& splits) {
  std::vector<int64_t> list;
  for (const settings::BatchSplit& split : splits) list.push_back(split.micro_batch_size);
  return list;
}

TEST(SplitChoices, AreTheDivisors) {
  settings::TrainingSettings training;
  training.global_batch_size = 12;
  EXPECT_THAT(sizes(candidate_splits(training, false)), ElementsAre(12, 6, 4, 3, 2, 1));
  EXPECT_THAT(sizes(candidate_splits(training, true)), ElementsAre(12));
}

TEST(SplitChoices, OfManyADozenIsLookedAt) {
  settings::TrainingSettings training;
  training.global_batch_size = 720'720;
  const auto all = candidate_splits(training, false);
  ASSERT_EQ(all.size(), 240U);
  const std::vector<int64_t> some = sizes(spread_splits(all));
  ASSERT_EQ(some.size(), 12U);
  EXPECT_EQ(some.front(), 720'720);
  EXPECT_EQ(some.back(), 1);
  for (size_t i = 1; i < some.size(); ++i) {
    EXPECT_LT(some[i], some[i - 1]);
    EXPECT_LT(some[i - 1], 8 * some[i]) << "spread evenly";
  }
  training.global_batch_size = 48;
  EXPECT_EQ(spread_splits(candidate_splits(training, false)).size(), 10U) << "few are all looked at";
}

TEST(SplitChoices, NoneIsLeftWhereResultsDependOnTheMicroBatch) {
  const auto sizes_with = [](std::vector<std::string> overrides) {
    const SmallRun run(overrides);
    return sizes(candidate_splits(run.scope().config.training, keeps_batch_whole(run.scope())));
  };
  EXPECT_THAT(sizes_with({}), ElementsAre(4, 2, 1));
  for (const char* coupled : {"training.state.accumulators=bf16", "training.fp8.recipe=current"}) {
    EXPECT_THAT(sizes_with({coupled, "training.precision=fp8"}), ElementsAre(4)) << coupled;
    EXPECT_THAT(sizes_with({coupled, "training.precision=fp8", "training.micro_batch_size=2"}),
                ElementsAre(2))
        << coupled;
  }
}

TEST(SplitChoices, ALargerPartIsWorthItWhereItGainsMoreThanTheMargin) {
  const std::vector<SplitTime> times = {{{8, 1}, 102}, {{4, 2}, 99}, {{2, 4}, 100}, {{1, 8}, 110}};
  EXPECT_THAT(worth_planning(times, 0), ElementsAre(true, true, true, true)) << "the whole batch in any case";
  EXPECT_THAT(worth_planning(times, 0.015), ElementsAre(true, false, true, true));
  EXPECT_THAT(worth_planning({{{4, 2}, 100}, {{2, 4}, 100}, {{1, 8}, 99}}, 0),
              ElementsAre(false, false, true));
}

}  // namespace
}  // namespace plimsoll::strategy
