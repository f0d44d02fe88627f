#include "cli/explain/planning_line.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

TEST(PlanningLine, SaysNothingWhereLinesAreNotRewritten) {
  testing::internal::CaptureStderr();
  {
    PlanningLine line("budgets");
    if (const auto tell = line.teller()) tell(1, 2);
    line.end();
    EXPECT_FALSE(line.teller());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace plimsoll::cli
