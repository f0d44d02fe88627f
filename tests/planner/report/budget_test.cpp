#include "planner/report/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace plimsoll::planner {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

/// 5 MiB of a device of its own, 2 MiB of the host's, 1 MiB the process's own.
PlanReport report_of(std::vector<Budget> budgets) {
  PlanReport report;
  report.device_is_process = false;
  report.persistent_bytes = 2 * kMiB;
  report.arena_bytes = 3 * kMiB;
  report.host_pinned_bytes = 2 * kMiB;
  report.overhead_bytes = kMiB;
  report.budgets = std::move(budgets);
  report.fits = exceeded(report, report.budgets) == nullptr;
  return report;
}

TEST(Budget, EachPoolHasItsOwn) {
  const Budget process{"memory.budget", Bounded::kProcess, 8 * kMiB},
      device{"runtime.discrete.memory", Bounded::kDevice, 5 * kMiB},
      host{"memory.host_budget", Bounded::kHost, 3 * kMiB};
  EXPECT_TRUE(report_of({process, device, host}).fits);
  for (Budget budget : {process, device, host}) {
    --budget.bytes;
    const PlanReport report = report_of({process, budget});
    ASSERT_FALSE(report.fits);
    EXPECT_EQ(exceeded(report, report.budgets)->setting, budget.setting);
  }
}

TEST(Budget, TheErrorNamesThePoolAndTheLeast) {
  const Budget device{"runtime.discrete.memory", Bounded::kDevice, kMiB};
  const Error error = does_not_fit(report_of({device}), "the plan", "advice");
  EXPECT_EQ(error.code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(error.what, "the plan needs 5.00 MiB of device memory and the budget is 1.00 MiB");
  EXPECT_EQ(error.where, "runtime.discrete.memory");
  EXPECT_THAT(error.hint, HasSubstr("must be at least 5.00 MiB (5242880 bytes) for this run; advice"));
  const Budget process{"memory.budget", Bounded::kProcess, kMiB, true};
  const Error whole = does_not_fit(report_of({process}), "generation");
  EXPECT_EQ(whole.what, "generation needs 8.00 MiB and the budget is 1.00 MiB");
  EXPECT_EQ(whole.where, "memory.budget: auto (what is available now)");
}

TEST(Budget, EachPoolThatLacksMemoryHasItsLineWhatLacksMostFirst) {
  const Budget process{"memory.budget", Bounded::kProcess, 7 * kMiB},
      device{"memory.device_budget", Bounded::kDevice, kMiB},
      host{"memory.host_budget", Bounded::kHost, kMiB};
  const PlanReport report = report_of({process, device, host});
  const Error error = does_not_fit(report, "the plan", "advice");
  EXPECT_EQ(error.where, "memory.device_budget");
  EXPECT_THAT(error.hint, HasSubstr("memory.device_budget must be at least 5.00 MiB"));
  EXPECT_THAT(error.hint, HasSubstr("advice"));
  ASSERT_EQ(error.more.size(), 2U);
  EXPECT_EQ(error.more[0].code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(error.more[0].where, "memory.host_budget");
  EXPECT_EQ(error.more[1].what, "the plan needs 8.00 MiB and the budget is 7.00 MiB");
  EXPECT_EQ(error.more[1].hint, "memory.budget must be at least 8.00 MiB (8388608 bytes) for this run");
  EXPECT_THAT(plan_table(report), HasSubstr("Does NOT fit: needs 5.00 MiB of the device's 1.00 MiB"));
}

TEST(Budget, TheTableSaysWhatIsExceeded) {
  const Budget process{"memory.budget", Bounded::kProcess, 100 * kMiB};
  EXPECT_EQ(plan_table(report_of({process})).find("NOT fit"), std::string::npos);
  const Budget device{"runtime.discrete.memory", Bounded::kDevice, kMiB};
  EXPECT_THAT(plan_table(report_of({process, device})),
              HasSubstr("Does NOT fit: needs 5.00 MiB of the device's 1.00 MiB (4.00 MiB too much)"));
  const Budget less{"memory.budget", Bounded::kProcess, 6 * kMiB};
  EXPECT_THAT(plan_table(report_of({less})),
              HasSubstr("Does NOT fit: needs 8.00 MiB, memory.budget is 6.00 MiB (2.00 MiB too much)"));
}

}  // namespace
}  // namespace plimsoll::planner
