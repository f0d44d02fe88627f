// The first line of a plan, and what would make it fit.
#include "planner/report/headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/report/budget.h"

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
  r.units = 1024;
  r.seconds_estimated = 0.5;
  r.model = "tiny";
  return r;
}

TEST(Verdict, SaysWhetherItFitsHowFastAndHowLong) {
  PlanReport r = report(8 << 20);
  EXPECT_EQ(headline(r), "Fits: peak 3.00 MiB of 8.00 MiB, about 2,048 tokens/s, 0.5 s a step\n");
  r.total_steps = 1000;
  EXPECT_EQ(headline(r), "Fits: peak 3.00 MiB of 8.00 MiB, about 2,048 tokens/s, 8m20s for 1,000 steps\n");
  EXPECT_THAT(
      headline(report(2 << 20)),
      StartsWith("Does NOT fit: needs 3.00 MiB, memory.budget is 2.00 MiB (1.00 MiB too much), about "));
}

/// 5 MiB of the card's 8, 3 MiB of the host's 4, of which 2 are offloaded.
PlanReport on_a_card() {
  PlanReport r = report(4 << 20);
  r.device_is_process = r.device_in_process = false;
  r.persistent_bytes = 5 << 20;
  r.host_pinned_bytes = 3 << 20;
  r.budgets.push_back({"memory.device_budget", Bounded::kDevice, 8 << 20});
  r.budgets.push_back({kCardOfProfile, Bounded::kDevice, 16 << 20});
  r.pools = {{"host_pinned", 2 << 20, 0, 1 << 20}};
  r.offload = "optimizer host";
  r.rates = "data sheet";
  r.fits = true;
  return r;
}

TEST(Verdict, NamesEachPoolWithItsOwnBudget) {
  PlanReport r = on_a_card();
  EXPECT_EQ(
      headline(r),
      "Fits: 5.00 MiB of the card's 8.00 MiB, 3.00 MiB of the host's 4.00 MiB, with 2.00 MiB offloaded to "
      "the host, about 2,048 tokens/s, 0.5 s a step\n");
  EXPECT_EQ(why_not(r), "");
  r.budgets[0].bytes = 1 << 20;
  EXPECT_THAT(headline(r),
              StartsWith("Does NOT fit: needs 3.00 MiB of the host's 1.00 MiB (2.00 MiB too much), "));
  EXPECT_THAT(why_not(r),
              StartsWith("It does not fit because the host has 1.00 MiB and the plan needs 3.00 MiB"));
  r.budgets[1].bytes = 4 << 20;
  EXPECT_THAT(headline(r), HasSubstr("; 5.00 MiB of the card's 4.00 MiB (1.00 MiB too much), "));
  const io::Tree event = plan_event(on_a_card());
  EXPECT_EQ(event.find("device")->find("budget_bytes")->integer, 8 << 20);
  EXPECT_EQ(event.find("host")->find("budget_bytes")->integer, 4 << 20);
  EXPECT_EQ(event.find("process_peak_bytes")->integer, 3 << 20);
}

TEST(Verdict, TellsNoTimeWithoutRates) {
  PlanReport r = on_a_card();
  r.rates = kUnknownRates;
  EXPECT_THAT(headline(r), Not(HasSubstr("tokens/s")));
  EXPECT_THAT(plan_table(r), HasSubstr("no rates of this card are known"));
  EXPECT_TRUE(plan_event(r).find("step")->find("seconds_estimated")->is_null());
}

TEST(Verdict, SaysWhatLiesOnTheDiskAndWhatOfItIsFree) {
  PlanReport r = report(8 << 20);
  r.offload = "optimizer disk";
  r.disk_bytes = 1 << 20;
  r.disk = DiskReport{.total_bytes = 9 << 20, .free_bytes = 2 << 20};
  EXPECT_EQ(headline(r),
            "Fits: peak 3.00 MiB of 8.00 MiB, with 1.00 MiB offloaded to disk, about 2,048 tokens/s, 0.5 s a "
            "step, 9.00 MiB of disk, of which only 2.00 MiB are free\n");
}

TEST(Verdict, IsTheFirstLineOfEveryPlan) {
  const PlanReport r = report(8 << 20);
  EXPECT_THAT(plan_table(r), StartsWith(headline(r)));
  EXPECT_THAT(short_plan(r), StartsWith(headline(r)));
  EXPECT_THAT(short_plan(r), Not(HasSubstr("Memory by class")));
}

TEST(Remedies, SayWithoutAnyWhatWasTried) {
  PlanReport r = report(2 << 20);
  r.tried = {"training.precision=bf16", "data.sequence_length=64"};
  r.tried_excess = "needs 2.50 MiB, memory.budget is 2.00 MiB (512.0 KiB too much)";
  EXPECT_EQ(remedy_lines(r),
            "No settings make it fit. Each of these was planned, and all that help together:\n"
            "  training.precision=bf16, data.sequence_length=64\n"
            "  Together the plan still needs 2.50 MiB, memory.budget is 2.00 MiB (512.0 KiB too much).\n"
            "  What is left is a larger budget or a smaller model.\n");
}

TEST(Remedies, AreLinesWithTheirCost) {
  PlanReport r = report(2 << 20);
  EXPECT_EQ(remedy_lines(r), "") << "nothing was tried";
  EXPECT_EQ(remedy_lines(report(8 << 20)), "");
  r.remedies = {{{{"training.precision", "bf16"}, {"data.sequence_length", "64"}},
                 1 << 20,
                 0.25,
                 "changes the results"}};
  EXPECT_THAT(remedy_lines(r),
              HasSubstr("  training.precision=bf16 data.sequence_length=64\n      peak 1.00 MiB, "
                        "0.25 s a step; changes the results\n"));
  EXPECT_THAT(short_plan(r), HasSubstr("Settings that would make it fit"));
  const io::Tree event = remedies_event(r);
  EXPECT_EQ(event.items.at(0).find("settings")->find("training.precision")->text, "bf16");
}

}  // namespace
}  // namespace plimsoll::planner
