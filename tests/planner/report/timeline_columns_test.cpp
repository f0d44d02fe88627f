#include "planner/report/timeline_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/small_plan.h"

namespace plimsoll::planner {
namespace {

TEST(TimelineColumnsTest, ColumnsKeepThePeak) {
  const TrainingPrograms programs = planned_small({});
  const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  for (const size_t columns : {size_t{1}, size_t{13}, size_t{60}, timeline.points.size(), size_t{900}}) {
    const std::vector<size_t> shown = timeline_columns(timeline, columns);
    ASSERT_EQ(shown.size(), columns);
    EXPECT_TRUE(std::is_sorted(shown.begin(), shown.end()));
    EXPECT_THAT(shown, testing::Contains(timeline.peak));
    const std::vector<PhaseRun> runs = phase_runs(timeline, shown);
    EXPECT_EQ(runs.front().first, 0U);
    EXPECT_EQ(runs.back().last, columns - 1);
  }
}

TEST(TimelineColumnsTest, AxesAreMarkedAtRoundFigures) {
  const auto labels = [](int64_t most) { return bytes_axis(most, 4).labels; };
  EXPECT_THAT(labels(int64_t{3} << 30), testing::ElementsAre("0", "1 GiB", "2 GiB", "3 GiB"));
  EXPECT_THAT(labels(int64_t{1700} << 20), testing::ElementsAre("0", "500 MiB", "1000 MiB", "1500 MiB"));
  EXPECT_THAT(labels((int64_t{5} << 20) / 2), testing::ElementsAre("0", "1 MiB", "2 MiB"));
  EXPECT_THAT(labels(3), testing::ElementsAre("0", "1 B", "2 B", "3 B"));
  EXPECT_LE(labels(int64_t{800} << 40).size(), 5U);
}

}  // namespace
}  // namespace plimsoll::planner
