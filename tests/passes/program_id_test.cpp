#include "passes/program_id.h"

#include <gtest/gtest.h>

#include <set>

#include "passes/session_plan.h"

namespace plimsoll::passes {
namespace {

TEST(ProgramIdTest, EachRoleHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int role = 0; role <= static_cast<int>(ProgramRole::kOther); ++role)
    names.insert(name(static_cast<ProgramRole>(role)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ProgramRole::kOther) + 1);
  EXPECT_EQ(name(ProgramId{ProgramRole::kStep}), "step");
  EXPECT_EQ(name(ProgramId{ProgramRole::kMicroNext, 128}), "micro_next@128");
}

TEST(ProgramIdTest, RolesSayWhatAProgramDoes) {
  EXPECT_TRUE(has_backward(ProgramRole::kStep) && !accumulates(ProgramRole::kStep));
  for (const ProgramRole role : {ProgramRole::kMicroFirst, ProgramRole::kMicroNext, ProgramRole::kMicroLast})
    EXPECT_TRUE(has_backward(role) && accumulates(role));
  for (const ProgramRole role : {ProgramRole::kUpdate, ProgramRole::kEval, ProgramRole::kDecode})
    EXPECT_FALSE(has_backward(role) || accumulates(role) || draws_parameters(role));
  EXPECT_TRUE(draws_parameters(ProgramRole::kInit) && draws_parameters(ProgramRole::kInitHead));
}

TEST(ProgramIdTest, ASessionFindsAProgramByRoleAndBucket) {
  SessionPlan session;
  for (const int64_t bucket : {64, 128}) session.programs.emplace_back().id = {ProgramRole::kEval, bucket};
  EXPECT_EQ(session.find_program({ProgramRole::kEval, 128}), 1);
  EXPECT_EQ(session.find_program({ProgramRole::kEval}), -1);
  EXPECT_EQ(session.find_program({ProgramRole::kStep, 64}), -1);
}

}  // namespace
}  // namespace plimsoll::passes
