#include "planner/programs/accumulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

using enum passes::ProgramRole;
using testing::ElementsAre;

TEST(AccumulationTest, OneMicroBatchIsOneProgram) {
  EXPECT_THAT(runs_per_step({}), ElementsAre(ProgramRuns{{kStep}, 1}));
  EXPECT_THAT(runs_per_step({}, 128), ElementsAre(ProgramRuns{{kStep, 128}, 1}));
}

TEST(AccumulationTest, SeveralMicroBatchesShareOneUpdate) {
  EXPECT_THAT(runs_per_step({4, true}, 128),
              ElementsAre(ProgramRuns{{kMicroFirst, 128}, 1}, ProgramRuns{{kMicroNext, 128}, 3},
                          ProgramRuns{{kUpdate}, 1}));
}

TEST(AccumulationTest, ADumpOfGradientsHasAccumulatorsForOneMicroBatch) {
  EXPECT_THAT(runs_per_step({1, true}),
              ElementsAre(ProgramRuns{{kMicroFirst}, 1}, ProgramRuns{{kUpdate}, 1}));
}

TEST(AccumulationTest, TheLastOfSeveralMicroBatchesSumsOverRanks) {
  EXPECT_THAT(runs_per_step({4, true, /*sums_in_last=*/true}, 128),
              ElementsAre(ProgramRuns{{kMicroFirst, 128}, 1}, ProgramRuns{{kMicroNext, 128}, 2},
                          ProgramRuns{{kMicroLast, 128}, 1}, ProgramRuns{{kUpdate}, 1}));
  EXPECT_THAT(
      runs_per_step({2, true, /*sums_in_last=*/true}),
      ElementsAre(ProgramRuns{{kMicroFirst}, 1}, ProgramRuns{{kMicroLast}, 1}, ProgramRuns{{kUpdate}, 1}));
}

TEST(AccumulationTest, ProgramsSayWhereTheySumOverRanks) {
  passes::SessionPlan session;
  session.programs.resize(1);
  session.programs[0].id = {kMicroNext, 64};
  EXPECT_FALSE(planned({4, true}, session).sums_in_last);
  session.programs[0].id = {kMicroLast, 64};
  EXPECT_TRUE(planned({4, true}, session).sums_in_last);
}

TEST(AccumulationTest, MicroBatchesAddUp) {
  for (const int64_t count : {1, 2, 7}) {
    for (const bool in_last : {false, true}) {
      int64_t backwards = 0;
      for (const auto& [id, times] : runs_per_step({count, true, in_last}))
        if (passes::has_backward(id.role)) backwards += times;
      EXPECT_EQ(backwards, count);
    }
  }
}

TEST(AccumulationTest, APlaceInTheStepIsByRole) {
  EXPECT_EQ(times_per_step(kMicroNext, {5, true}), 4);
  EXPECT_EQ(times_per_step(kUpdate, {5, true}), 1);
  EXPECT_EQ(times_per_step(kStep, {5, true}), 0);
  EXPECT_EQ(times_per_step(kEval, {}), 0);
  EXPECT_EQ(costed_program(true), kMicroNext);
  EXPECT_EQ(costed_program(false), kStep);
}

TEST(AccumulationTest, OneLengthHasNoBucket) {
  EXPECT_EQ(bucket_of(128, std::vector<int64_t>{}), 0);
  EXPECT_EQ(bucket_of(128, std::vector<int64_t>{128}), 0);
  EXPECT_EQ(bucket_of(64, std::vector<int64_t>{64, 128}), 64);
}

}  // namespace
}  // namespace plimsoll::planner
