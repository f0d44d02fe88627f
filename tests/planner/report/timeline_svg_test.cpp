#include "planner/report/timeline_svg.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/small_plan.h"

namespace plimsoll::planner {
namespace {

TEST(TimelineSvgTest, ThePictureMarksPeakAndPhasesAndStandsAlone) {
  const TrainingPrograms programs = planned_small({.vocab_size = 3000});
  const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  const std::string svg = timeline_svg(timeline, "a <model> & its step");
  for (const char* text :
       {"a &lt;model&gt; &amp; its step", "peak ", "head_loss in lm_head", ">forward<", ">loss<",
        ">backward<", ">update<", "activations ", "parameters ", "prefers-color-scheme:dark", ">0<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("href"), std::string::npos);
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(TimelineSvgTest, WhatWasMeasuredIsALineOverIt) {
  const TrainingPrograms programs = planned_small({.vocab_size = 3000});
  MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  EXPECT_EQ(timeline_svg(timeline, "plan").find("<polyline"), std::string::npos);
  timeline.measured = {.beside_bytes = 1000, .bytes = {}};
  timeline.measured.bytes.assign(timeline.points.size(), (int64_t{3} << 20) + 1000);
  const std::string svg = timeline_svg(timeline, "plan");
  EXPECT_NE(svg.find("<polyline class=\"measured\""), std::string::npos);
  EXPECT_NE(svg.find("measured, at most 3.00 MiB"), std::string::npos);
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'));
}

}  // namespace
}  // namespace plimsoll::planner
