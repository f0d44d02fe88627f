#include "planner/report/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanReport report() {
  PlanReport r;
  r.seconds_estimated = 2;
  r.why = Why{.budget = "memory.budget",
              .faster = Alternative{4, 1, "cheap ops", 512, 900 << 20, 100 << 20, 1.5},
              .runner_up = Alternative{2, 2, "cheap ops", 0, 700 << 20, -(100 << 20), 2.5},
              .more_bytes = 100 << 20,
              .with_more = Alternative{4, 1, "cheap ops", 256, 890 << 20, -1, 1.75}};
  return r;
}

TEST(Why, NamesWhatIsFasterTheRunnerUpAndWhatMoreBuys) {
  const std::string text = why_lines(report());
  EXPECT_THAT(text, HasSubstr("micro-batch 4, no accumulation, recompute cheap ops, loss by 512 tokens\n"));
  EXPECT_THAT(text, HasSubstr("about 1.5 s, but 100.0 MiB over memory.budget\n"));
  EXPECT_THAT(text, HasSubstr("micro-batch 2 x 2 accumulation steps, recompute cheap ops\n"));
  EXPECT_THAT(text, HasSubstr("about 1.75 s: 0.25 s per step less (12.5 %)\n"));
  const io::Tree event = why_event(report());
  EXPECT_EQ(event.find("faster")->find("excess_bytes")->text, std::to_string(100 << 20));
  EXPECT_EQ(event.find("with_more")->find("loss_chunk_tokens")->text, "256");
}

TEST(Why, SaysThatNothingIsGivenUp) {
  PlanReport r;
  r.why.budget = "memory.budget";
  r.why.more_bytes = 100 << 20;
  EXPECT_THAT(why_lines(r), HasSubstr("100.0 MiB more   would not help"));
  r.why.more_bytes = 0;
  EXPECT_THAT(why_lines(r), HasSubstr("No faster plan was found"));
  EXPECT_THAT(why_lines(r), Not(HasSubstr("more  ")));
  EXPECT_EQ(why_event(r).find("runner_up")->kind, io::Tree{}.kind);
  EXPECT_EQ(why_lines(PlanReport{}), "");
}

}  // namespace
}  // namespace plimsoll::planner
