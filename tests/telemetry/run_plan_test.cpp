#include "telemetry/run_plan.h"

#include <gtest/gtest.h>

namespace plimsoll::telemetry {
namespace {

RunPlan small_plan() {
  RunPlan plan{.device_is_process = false, .planning_seconds = 1.5, .timeline = {}};
  plan.timeline.program = "step";
  plan.timeline.persistent_bytes = 100, plan.timeline.arena_bytes = 50;
  for (const int64_t bytes : {30, 50, 20}) {
    planner::TimelinePoint& point = plan.timeline.points.emplace_back();
    point.position = static_cast<int32_t>(2 * plan.timeline.points.size());
    point.op = "linear", point.layer = "layers.1.mlp", point.phase = planner::StepPhase::kBackward;
    point.bytes[0] = 100, point.bytes[static_cast<size_t>(planner::MemoryClass::kActivations)] = bytes;
    point.total_bytes = 100 + bytes;
  }
  plan.timeline.peak = 1;
  return plan;
}

TEST(RunPlan, ReadsBack) {
  const std::string text = run_plan_json(small_plan());
  const auto read = parse_run_plan(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(run_plan_json(*read), text);
  EXPECT_FALSE(read->device_is_process);
  EXPECT_EQ(read->timeline.at_peak().total_bytes, 150);
  EXPECT_EQ(read->timeline.points[2].position, 6);
  EXPECT_EQ(read->timeline.points[2].op, "linear");
}

/// Classes came later, always behind the others.
TEST(RunPlan, ReadsAFileOfAnEarlierVersion) {
  std::string text = run_plan_json(small_plan());
  const auto drop = [&](const std::string& last) {
    size_t count = 0;
    for (size_t at = text.find(last); at != std::string::npos; at = text.find(last, at + 1), ++count)
      text.replace(at, last.size(), "]");
    return count;
  };
  ASSERT_EQ(drop(", \"buffers\", \"gathered_parameters\", \"fp8_weights\", \"weight_casts\"]"), 1U);
  ASSERT_EQ(drop(", 0, 0, 0, 0]"), 3U);
  const auto read = parse_run_plan(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->timeline.at_peak().total_bytes, 150);
}

TEST(RunPlan, WhatIsNoPlanIsRefused) {
  const std::string good = run_plan_json(small_plan());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string("{\"points\": 3"), good.substr(0, good.size() / 2),
        with("\"op\": \"linear\"", "\"op\": \"no such op\""), with("\"peak\": 1", "\"peak\": 3"),
        with("\"peak\": 1", "\"peak\": -1"), with("\"phase\": 2", "\"phase\": 4"),
        with("\"arena_bytes\": 50", "\"arena_bytes\": 1e300"), with("[100, ", "[-100, "), with("[100, ", "["),
        with("\"parameters\"", "\"others\""), with("\"op_index\": 2", "\"op_index\": 3000000000"),
        with("\"planning_seconds\": 1.5", "\"planning_seconds\": \"long\"")}) {
    const auto read = parse_run_plan(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kBadData) << read.error().message();
  }
}

}  // namespace
}  // namespace plimsoll::telemetry
