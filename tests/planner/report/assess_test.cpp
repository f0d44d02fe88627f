// The report of a session in its surroundings.
#include "planner/report/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/cpu_device.h"
#include "ir/builder.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "runtime/session_testing.h"

namespace plimsoll::planner {
namespace {

passes::SessionPlan small_session(const runtime::Target& target) {
  ir::Graph graph;
  graph.name = "step";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId w = b.state({"w", {ir::DType::kF32, {1024}}, ir::StateClass::kParameter});
  b.assign("w", ops::add(b, w, ops::fill(b, {1024}, 1.0)));
  EXPECT_TRUE(b.status().ok());
  auto program = session_testing::plan_program(std::move(graph), target);
  EXPECT_TRUE(program.ok());
  std::vector<passes::Program> programs;
  programs.push_back(std::move(*program));
  auto session = passes::plan_session(std::move(programs), {});
  EXPECT_TRUE(session.ok());
  return std::move(*session);
}

TEST(Assess, FitsWhereEveryBudgetHoldsToTheByte) {
  const cpu::CpuTarget target(2);
  const passes::SessionPlan session = small_session(target);
  Surroundings around{.num_threads = 2, .host_bytes = 1000};
  const PlanReport free = assess(session, target, around);
  EXPECT_TRUE(free.fits) << "nothing bounds it";
  around.budgets = {{"memory.budget", Bounded::kProcess, free.process_peak_bytes()},
                    {"memory.host_budget", Bounded::kHost, free.host_peak_bytes()}};
  EXPECT_TRUE(assess(session, target, around).fits);
  EXPECT_EQ(assess(session, target, around).budget_bytes, free.process_peak_bytes());
  around.budgets[1].bytes -= 1;
  EXPECT_FALSE(assess(session, target, around).fits) << "the second counts too";
}

TEST(Assess, FilesAreWrittenFromWhereTensorsLie) {
  const cpu::CpuTarget target(2);
  const PlanReport report =
      assess(small_session(target), target, {.host_bytes = 1000, .file_phases = {"save"}});
  const PhaseBytes& save = report.phases.back();
  EXPECT_EQ(save.name, "save");
  EXPECT_EQ(save.persistent_bytes, report.persistent_bytes);
  EXPECT_EQ(save.arena_bytes, 0);
  EXPECT_EQ(save.host_bytes, report.host_peak_bytes());
}

TEST(DescribeWork, SecondsAreTheSumOfTheParts) {
  PlanReport report;
  Work work{.flops = 1e12, .units = 64, .rates = "calibrated"};
  work.seconds.parts = {1, 2, 0, 0.5};
  describe_work(work, report);
  EXPECT_EQ(report.seconds_estimated, 3.5);
  EXPECT_EQ(report.units, 64);
  EXPECT_EQ(report.rates, "calibrated");
}

}  // namespace
}  // namespace plimsoll::planner
