// The first line of a plan, and what would make it fit.
#include "planner/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

PlanReport report(int64_t budget) {
  PlanReport r;
  r.persistent_bytes = 3 << 20;
  r.budget_bytes = budget;
  r.budgets = {{"memory.budget", Bounded::kProcess, budget}};
  r.fits = budget >= r.persistent_bytes;
  r.tokens = 1024;
  r.seconds_estimated = 0.5;
  r.model = "tiny";
  return r;
}

TEST(Verdict, SaysWhetherItFitsHowFastAndHowLong) {
  PlanReport r = report(8 << 20);
  EXPECT_EQ(verdict(r), "Fits: peak 3.00 MiB of 8.00 MiB, about 2,048 tokens/s, 0.5 s a step\n");
  r.total_steps = 1000;
  EXPECT_EQ(verdict(r), "Fits: peak 3.00 MiB of 8.00 MiB, about 2,048 tokens/s, 8m20s for 1,000 steps\n");
  EXPECT_THAT(
      verdict(report(2 << 20)),
      StartsWith("Does NOT fit: the peak is 1.00 MiB over memory.budget, 3.00 MiB of 2.00 MiB, about "));
}

TEST(Verdict, IsTheFirstLineOfEveryPlan) {
  const PlanReport r = report(8 << 20);
  EXPECT_THAT(plan_table(r), StartsWith(verdict(r)));
  EXPECT_THAT(short_plan(r), StartsWith(verdict(r)));
  EXPECT_THAT(short_plan(r), Not(HasSubstr("Memory by class")));
}

TEST(Remedies, AreLinesWithTheirCost) {
  PlanReport r = report(2 << 20);
  EXPECT_THAT(remedy_lines(r), HasSubstr("No setting was found that makes it fit"));
  EXPECT_EQ(remedy_lines(report(8 << 20)), "");
  r.remedies = {
      {{{"training.precision", "bf16"}, {"data.sequence_length", "64"}}, 1 << 20, 0.25, "other numbers"}};
  EXPECT_THAT(remedy_lines(r),
              HasSubstr("  training.precision=bf16 data.sequence_length=64\n      peak 1.00 MiB, "
                        "0.25 s a step; other numbers\n"));
  EXPECT_THAT(short_plan(r), HasSubstr("What would make it fit"));
  const Tree event = remedies_event(r);
  EXPECT_EQ(event.items.at(0).find("settings")->find("training.precision")->text, "bf16");
}

}  // namespace
}  // namespace plimsoll::planner
