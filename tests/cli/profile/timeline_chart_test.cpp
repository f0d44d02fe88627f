#include "cli/profile/timeline_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace plimsoll::cli {
namespace {

using planner::MemoryClass;
using planner::StepPhase;

/// Parameters of 64 MiB below, activations that go up to 64 MiB at the loss and down again.
planner::MemoryTimeline mountain(int32_t num_ops) {
  planner::MemoryTimeline timeline;
  for (int32_t i = 0; i < num_ops; ++i) {
    planner::TimelinePoint point;
    point.position = i;
    point.op = i == num_ops / 2 ? "loss" : "linear";
    point.layer = "lm_head";
    point.phase = i < num_ops / 2    ? StepPhase::kForward
                  : i == num_ops / 2 ? StepPhase::kLoss
                                     : StepPhase::kBackward;
    const int64_t up = std::min(i, num_ops - 1 - i);
    point.bytes[static_cast<size_t>(MemoryClass::kParameters)] = int64_t{64} << 20;
    point.bytes[static_cast<size_t>(MemoryClass::kActivations)] =
        (int64_t{64} << 20) * up / std::max(1, num_ops / 2);
    point.total_bytes = planner::total(point.bytes);
    if (timeline.points.empty() || point.total_bytes > timeline.at_peak().total_bytes)
      timeline.peak = timeline.points.size();
    timeline.points.push_back(point);
  }
  return timeline;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TimelineChartTest, WhatWasMeasuredLiesOverIt) {
  planner::MemoryTimeline timeline = mountain(101);
  timeline.measured.beside_bytes = int64_t{8} << 20;
  timeline.measured.bytes.assign(101, int64_t{8 + 96} << 20);
  const std::vector<std::string> lines = lines_of(timeline_chart(timeline, 80));
  ASSERT_EQ(lines.size(), 18U);
  for (size_t row = 1; row <= 16; ++row)  // 8 MiB each, from above
    EXPECT_EQ(std::count(lines[row].begin(), lines[row].end(), '*'), row == 4 ? 68 : 0) << lines[row];
  EXPECT_NE(timeline_legend(timeline).find("*  measured     96.0 MiB  75.0 %"), std::string::npos)
      << timeline_legend(timeline);
  // More than was planned is shown, to scale.
  timeline.measured.bytes.assign(101, int64_t{8 + 256} << 20);
  const std::vector<std::string> over = lines_of(timeline_chart(timeline, 80));
  EXPECT_EQ(std::count(over[1].begin(), over[1].end(), '*'), 68) << over[1];
  EXPECT_NE(over[0].find("v 128.0 MiB at loss in lm_head"), std::string::npos) << over[0];
}

TEST(TimelineChartTest, StacksClassesToScale) {
  const std::vector<std::string> lines = lines_of(timeline_chart(mountain(101), 80));
  ASSERT_EQ(lines.size(), 18U);  // the mark, 16 rows, the phases
  const size_t peak = lines[0].find("v 128.0 MiB at loss in lm_head");
  ASSERT_NE(peak, std::string::npos);
  for (size_t row = 1; row <= 16; ++row) EXPECT_EQ(lines[row].at(peak), row <= 8 ? 'a' : 'P') << row;
  EXPECT_EQ(lines[16].substr(12), std::string(68, 'P'));
  EXPECT_EQ(lines[9].substr(12), std::string(68, 'P'));
  EXPECT_EQ(std::count(lines[1].begin(), lines[1].end(), 'a'), 5) << "the top is narrow";
  EXPECT_EQ(lines[16].substr(0, 12), "         0 |");
  EXPECT_EQ(lines[8].substr(0, 12), "           |");
  EXPECT_THAT(lines[17], testing::ContainsRegex("[|]-+ forward -+[|]+-+ backward -+"));
}

TEST(TimelineChartTest, FitsAnyWidth) {
  for (const int columns : {1, 40, 57, 80, 119})
    for (const int32_t num_ops : {1, 2, 5, 2000}) {
      for (const std::string& line : lines_of(timeline_chart(mountain(num_ops), columns)))
        EXPECT_LE(line.size(), static_cast<size_t>(std::max(40, columns))) << line;
    }
  EXPECT_EQ(timeline_chart({}, 80), "");
}

}  // namespace
}  // namespace plimsoll::cli
