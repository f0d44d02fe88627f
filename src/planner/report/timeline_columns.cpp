#include "planner/report/timeline_columns.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::planner {

std::vector<size_t> timeline_columns(const MemoryTimeline& timeline, size_t columns) {
  const std::vector<TimelinePoint>& points = timeline.points;
  std::vector<size_t> shown;
  if (points.empty()) return shown;
  for (size_t c = 0; c < columns; ++c) {
    const size_t begin = c * points.size() / columns;
    const size_t end = std::max(begin + 1, (c + 1) * points.size() / columns);
    const auto most = std::max_element(
        points.begin() + static_cast<int64_t>(begin), points.begin() + static_cast<int64_t>(end),
        [](const TimelinePoint& a, const TimelinePoint& b) { return a.total_bytes < b.total_bytes; });
    shown.push_back(static_cast<size_t>(most - points.begin()));
  }
  return shown;
}

std::vector<PhaseRun> phase_runs(const MemoryTimeline& timeline, const std::vector<size_t>& columns) {
  size_t last_backward = 0;
  for (size_t c = 0; c < columns.size(); ++c)
    if (timeline.points[columns[c]].phase == StepPhase::kBackward) last_backward = c;
  std::vector<PhaseRun> runs;
  for (size_t c = 0; c < columns.size(); ++c) {
    StepPhase phase = timeline.points[columns[c]].phase;
    if (phase == StepPhase::kUpdate && c < last_backward) phase = StepPhase::kBackward;
    if (runs.empty() || runs.back().phase != phase) runs.push_back({phase, c, c});
    runs.back().last = c;
  }
  return runs;
}

BytesAxis bytes_axis(int64_t most, int64_t ticks) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && most >= int64_t{2} << (10 * (unit + 1))) ++unit;
  const int64_t of_unit = int64_t{1} << (10 * unit);
  // A step of half a GiB reads as such; below a unit nothing finer is needed.
  static constexpr double kSteps[] = {0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  double step = 1000;
  for (const double candidate : kSteps)
    if (candidate * static_cast<double>(of_unit * ticks) >= static_cast<double>(most) && candidate < step &&
        (unit > 0 || candidate >= 1))
      step = candidate;
  BytesAxis axis;
  axis.step = static_cast<int64_t>(step * static_cast<double>(of_unit));
  for (int64_t at = 0; at <= most; at += axis.step)
    axis.labels.push_back(
        at == 0
            ? "0"
            : fmt::format("{:g} {}", static_cast<double>(at) / static_cast<double>(of_unit), kUnits[unit]));
  return axis;
}

std::string place_of(const TimelinePoint& point) {
  return point.layer.empty() ? std::string(point.op) : fmt::format("{} in {}", point.op, point.layer);
}

}  // namespace plimsoll::planner
