// What the trace's events explain of a step, and what they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/profile_testing.h"

namespace plimsoll::profiling {
namespace {

using profile_testing::two_steps;
using testing::ElementsAre;
using testing::Pair;

TEST(ProfileParts, ATimeInWhichNothingWasTakenDownIsInNoEvent) {
  EXPECT_THAT(
      parts_of_steps(profiling::profile_testing::two_steps()),
      ElementsAre(Pair("ops", 6), Pair("copies", 2), Pair("wait for data", 1), Pair("in no event", 1)));
}

TEST(ProfileParts, OpsThatAreMissingAreMissed) {
  Profile profile = profiling::profile_testing::two_steps();
  for (ProfiledStep& step : profile.steps) step.ops.pop_back();
  EXPECT_THAT(parts_of_steps(profile), ElementsAre(Pair("ops", 4), Pair("copies", 2),
                                                   Pair("wait for data", 1), Pair("in no event", 3)));
}

TEST(ProfileParts, OfASpanAroundOpsTheRestIsItsOwn) {
  Profile profile = profiling::profile_testing::two_steps();
  for (ProfiledStep& step : profile.steps)
    step.spans.push_back({"issue of ops", SpanLane::kStep, 0, step.start + 1, step.start + 9.5});
  EXPECT_THAT(parts_of_steps(profile),
              ElementsAre(Pair("ops", 6), Pair("copies", 2), Pair("wait for data", 1),
                          Pair("issue of ops", 0.5), Pair("in no event", 0.5)));
}

TEST(ProfileParts, NeitherOverlapsNorOtherThreadsNorWhatLiesOutsideCount) {
  Profile profile = profiling::profile_testing::two_steps();
  for (ProfiledStep& step : profile.steps) {
    step.ops.push_back({0, step.start + 2, 2});
    step.spans.push_back({"load a batch", SpanLane::kLoader, 0, step.start, step.start + 10});
    step.spans.push_back({"late", SpanLane::kStep, 0, step.start + 9.5, step.start + 12});
  }
  EXPECT_THAT(parts_of_steps(profile),
              ElementsAre(Pair("ops", 6), Pair("copies", 2), Pair("wait for data", 1), Pair("late", 0.5),
                          Pair("in no event", 0.5)));
}

TEST(ProfileParts, UtilisationIsNotEfficiency) {
  Profile profile = profiling::profile_testing::two_steps();
  profile.facts[0].peak_seconds = 1;
  for (ProfiledStep& step : profile.steps) {
    step.ops[0].busiest_seconds = 4, step.ops[0].mean_seconds = 3;
    step.units = 100;
  }
  Efficiency used = efficiency_of(profile);
  EXPECT_DOUBLE_EQ(used.utilisation, 0.5);  // 3 s of threads, 2 of an op without them
  EXPECT_DOUBLE_EQ(used.necessary, 0.6);
  EXPECT_DOUBLE_EQ(used.mfu, 0.1);
  // Work on padding and work that is done again is work, and not necessary.
  for (ProfiledStep& step : profile.steps) step.units = 50;
  used = efficiency_of(profile);
  EXPECT_DOUBLE_EQ(used.utilisation, 0.5);
  EXPECT_DOUBLE_EQ(used.necessary, 0.3);
  EXPECT_DOUBLE_EQ(used.mfu, 0.05);
  profile.facts[0].recomputed = true;
  used = efficiency_of(profile);
  EXPECT_DOUBLE_EQ(used.utilisation, 0.5);
  EXPECT_DOUBLE_EQ(used.necessary, 0.1);
  EXPECT_DOUBLE_EQ(used.mfu, 0);
}

}  // namespace
}  // namespace plimsoll::profiling
