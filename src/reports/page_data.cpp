#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/report/timeline_columns.h"
#include "reports/downsample.h"
#include "reports/html.h"
#include "reports/page.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kBuckets = 800;      // a point for each pixel of a wide chart, twice
constexpr size_t kLeastBuckets = 60;  // of a curve on a page of many runs
constexpr size_t kColumns = 500;      // of a timeline
constexpr size_t kDrawnFigures = 6;   // what follows kLossScale is in the tables

size_t buckets_of(size_t num_runs) {
  return std::max(kLeastBuckets, 4 * kBuckets / std::max<size_t>(4, num_runs));
}

/// {"x": […], "y": […]}
template <typename X, typename Y>
std::string curve(size_t size, size_t buckets, X x, Y y) {
  std::vector<double> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = y(i);
  std::string xs, ys;
  for (const size_t i : downsample(values, buckets)) {
    xs += (xs.empty() ? "" : ",") + std::to_string(x(i));
    ys += (ys.empty() ? "" : ",") + script_number(values[i]);
  }
  return "{\"x\":[" + xs + "],\"y\":[" + ys + "]}";
}

std::string evaluations(const ReportedRun& run, size_t buckets) {
  std::vector<std::string> names;
  for (const EvalRow& row : run.events.evals)
    if (std::find(names.begin(), names.end(), row.name) == names.end() && names.size() < 12)
      names.push_back(row.name);
  std::string out;
  for (const std::string& name : names) {
    std::vector<const EvalRow*> rows;
    for (const EvalRow& row : run.events.evals)
      if (row.name == name) rows.push_back(&row);
    out += (out.empty() ? "" : ",") + script_string(name) + ":" +
           curve(
               rows.size(), buckets, [&](size_t i) { return rows[i]->step; },
               [&](size_t i) { return rows[i]->loss; });
  }
  return "{" + out + "}";
}

std::string run_data(const ReportedRun& run, size_t buckets) {
  const auto& steps = run.events.steps;
  std::string out = "{\"name\":" + script_string(run.name) + ",\"steps\":" + std::to_string(steps.size());
  out += ",\"curves\":{";
  for (size_t f = 0; f < kDrawnFigures; ++f)
    out += fmt::format("{}\"{}\":", f == 0 ? "" : ",", name(static_cast<Figure>(f))) +
           curve(
               steps.size(), buckets, [&](size_t i) { return steps[i].step; },
               [&](size_t i) { return steps[i].values[f]; });
  out += "},\"evals\":" + evaluations(run, buckets) + ",\"machine\":{";
  std::string machine;
  for (const auto& [figure, points] : run.events.machine)
    machine += (machine.empty() ? "" : ",") + script_string(figure) + ":" +
               curve(
                   points.size(), buckets, [&, p = &points](size_t i) { return (*p)[i].first; },
                   [&, p = &points](size_t i) { return (*p)[i].second; });
  return out + machine + "}}";
}

/// Bytes by class over the ops; below them what the process has beside states and arena.
std::string timeline_data(const ReportedRun& run) {
  if (!run.plan || run.plan->timeline.points.empty()) return "null";
  const planner::MemoryTimeline& timeline = run.plan->timeline;
  const auto columns = planner::timeline_columns(timeline, std::min(kColumns, timeline.points.size()));
  const double states = static_cast<double>(timeline.at_peak().total_bytes);
  // As the run itself said: the process's part moves with each build.
  double whole =
      member(run.events.plan, run.plan->device_is_process ? "process_peak_bytes" : "device.peak_bytes");
  if (!(whole >= states)) whole = states;
  std::string positions, ops, phases, classes;
  for (const size_t at : columns) {
    const planner::TimelinePoint& point = timeline.points[at];
    positions += (positions.empty() ? "" : ",") + std::to_string(point.position);
    ops += (ops.empty() ? "" : ",") + script_string(planner::place_of(point));
    phases += (phases.empty() ? "" : ",") + script_string(planner::name(point.phase));
  }
  for (size_t c = 0; c < planner::kNumMemoryClasses; ++c) {
    std::string bytes;
    bool any = false;
    for (const size_t at : columns) {
      any |= timeline.points[at].bytes[c] > 0;
      bytes += (bytes.empty() ? "" : ",") + std::to_string(timeline.points[at].bytes[c]);
    }
    if (any)
      classes += fmt::format("{}[\"{}\",[{}]]", classes.empty() ? "" : ",",
                             planner::name(static_cast<planner::MemoryClass>(c)), bytes);
  }
  const double measured = member(run.events.summary, "measured_peak_bytes");
  return fmt::format(
      "{{\"program\":{},\"beside\":{},\"planned\":{},\"measured\":{},\"x\":[{}],\"ops\":[{}],\"phases\":[{}],"
      "\"classes\":[{}]}}",
      script_string(timeline.program), script_number(whole - states), script_number(whole),
      script_number(measured), positions, ops, phases, classes);
}

}  // namespace

bool is_downsampled(std::span<const ReportedRun> runs) {
  return std::any_of(runs.begin(), runs.end(), [&](const ReportedRun& run) {
    return run.events.steps.size() > 2 * buckets_of(runs.size()) + 2;
  });
}

std::string page_data(std::span<const ReportedRun> runs) {
  std::string list, timelines;
  for (const ReportedRun& run : runs) {
    list += (list.empty() ? "" : ",\n") + run_data(run, buckets_of(runs.size()));
    timelines += (timelines.empty() ? "" : ",\n") + timeline_data(run);
  }
  return "{\"runs\":[" + list + "],\n\"timelines\":[" + timelines + "]}";
}

}  // namespace plimsoll::reports
