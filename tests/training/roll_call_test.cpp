// What ranks say of a step, and where they disagree.
#include "training/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/group_ranks.h"

namespace plimsoll::training {
namespace {

using testing::HasSubstr;

RankReport some_report() {
  return {.step = 12,
          .plan = 0xfedcba9876543210ULL,
          .targets = 4095,
          .length = 512,
          .seconds = 0.1234567890123,
          .stop = "SIGTERM",
          .settings = "training:\n  seed: 3\n"};
}

TEST(RollCall, ReportsAreReadAsTheyWereWritten) {
  const RankReport r = some_report(), read = parse_report(report_text(r));
  EXPECT_EQ(read.step, r.step);
  EXPECT_EQ(read.plan, r.plan);
  EXPECT_EQ(read.targets, r.targets);
  EXPECT_EQ(read.length, r.length);
  EXPECT_EQ(read.seconds, r.seconds);
  EXPECT_EQ(read.stop, r.stop);
  EXPECT_EQ(read.settings, r.settings);
  EXPECT_EQ(parse_report(report_text({})).stop, "");
}

std::string disagreement(RankReport other) {
  const Status status = compare_reports(some_report(), other, 3);
  EXPECT_FALSE(status);
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
  EXPECT_EQ(status.error().where, "rank 3");
  return status.error().what;
}

TEST(RollCall, DisagreementsNameBothValues) {
  EXPECT_TRUE(compare_reports(some_report(), some_report(), 3));
  RankReport other = some_report();
  other.settings = "training:\n  seed: 4\n";
  EXPECT_EQ(disagreement(other), "settings differ: 'seed: 3' on rank 0, 'seed: 4' on rank 3");
  other = some_report();
  other.plan = 1;
  EXPECT_THAT(disagreement(other), HasSubstr("fedcba9876543210 on rank 0, 0000000000000001 on rank 3"));
  other = some_report();
  other.step = 11;
  EXPECT_THAT(disagreement(other), HasSubstr("rank 0 has finished step 12, rank 3 step 11"));
  other = some_report();
  other.targets = 4000;
  EXPECT_THAT(disagreement(other),
              HasSubstr("4095 targets in sequences of 512 on rank 0, 4000 of 512 on rank 3"));
}

TEST(RollCall, TellsOfSlowRanksAndStops) {
  ranks::fixtures::with_ranks(3, [](ranks::Group& group) {
    RollCall roll_call(group);
    for (int64_t step = 1; step <= RollCall::kSlowSteps; ++step) {
      RankReport own{.step = step, .seconds = group.rank() == 2 ? 1.5 : 1.0 + 0.01 * group.rank()};
      if (group.rank() == 1 && step == RollCall::kSlowSteps) own.stop = "SIGUSR1";
      ASSERT_TRUE(roll_call.report(own));
      if (group.rank() == 0) {
        ASSERT_TRUE(roll_call.times());
        EXPECT_EQ(roll_call.times()->slowest, 2);
        EXPECT_EQ(roll_call.times()->slowest_seconds, 1.5);
        EXPECT_EQ(roll_call.times()->median_seconds, 1.01);
        const auto slow = roll_call.slow_rank();
        EXPECT_EQ(slow.has_value(), step == RollCall::kSlowSteps);
        EXPECT_EQ(slow.value_or(""),
                  step < RollCall::kSlowSteps
                      ? ""
                      : "rank 2 is slow: 1.5 s of compute a step, the median of the ranks is 1.01 s");
        EXPECT_EQ(roll_call.stop(), step == RollCall::kSlowSteps ? "SIGUSR1 at rank 1" : "");
      }
      const auto decision = roll_call.decide(group.rank() == 0 ? RankDecision::kFinish : RankDecision::kStep);
      ASSERT_TRUE(decision);
      EXPECT_EQ(*decision, RankDecision::kFinish);
    }
  });
}

}  // namespace
}  // namespace plimsoll::training
