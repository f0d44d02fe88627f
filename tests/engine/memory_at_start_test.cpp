#include "engine/memory_at_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planned_run.h"
#include "strategy/variants.h"
#include "telemetry/recording_sink.h"

namespace plimsoll::engine {
namespace {

/// Another process took the memory while the data was made ready.
TEST(MemoryAtStart, WhatIsNoLongerThereIsSaidWithWhatWouldFit) {
  analysis::PlannedRun c({"memory.budget=4GiB"});
  telemetry::RecordingSink sink{{.events = true}};
  telemetry::Events events(sink);
  const planner::PlanReport& report = c.prepared().report;
  const int64_t peak = report.process_peak_bytes(),
                held = peak - report.persistent_bytes - report.arena_bytes;
  EXPECT_TRUE(check_memory_at_start(c.config, *c.target, {}, {held, peak, ""}, c.prepared(), events));
  EXPECT_TRUE(c.prepared().report.fits);
  const int64_t left = c.prepared().report.persistent_bytes + c.prepared().report.arena_bytes - (1 << 20);
  const Status status = check_memory_at_start(
      c.config, *c.target, {}, {held, left, "/sys/fs/cgroup/memory.max"}, c.prepared(), events);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(status.error().where, "/sys/fs/cgroup/memory.max");
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    EXPECT_LE(remedy.peak_bytes, held + left) << remedy.text();
    EXPECT_EQ(remedy.settings.front().first, "memory.budget");
    EXPECT_EQ(strategy::Variants(c.config, *c.target, {}).plan(remedy.settings)->process_peak_bytes(),
              remedy.peak_bytes);
  }
  EXPECT_THAT(status.error().hint, testing::HasSubstr(c.prepared().report.remedies.front().text()));
  EXPECT_THAT(sink.lines, testing::Contains(testing::HasSubstr("\"fits\": false")));
}

}  // namespace
}  // namespace plimsoll::engine
