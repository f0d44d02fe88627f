#include "telemetry/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/json.h"
#include "ops/op_list.h"
#include "planner/report/timeline_columns.h"

namespace plimsoll::telemetry {
namespace {

using planner::MemoryTimeline;
using planner::TimelinePoint;

constexpr size_t kMostPoints = 500;  // a page draws no more
constexpr int64_t kMostFileBytes = 1 << 20;
constexpr int64_t kMostBytes = int64_t{1} << 53;  // what a number of JSON is sure to hold

Error bad(const std::string& what) {
  return {ErrorCode::kBadData, "this is no plan of a run: " + what, std::string(kPlanFile),
          "remove it, and the run is planned again"};
}

Result<int64_t> whole(const io::Tree& tree, std::string_view key, int64_t most) {
  const io::Tree* number = tree.find(key);
  if (number == nullptr || number->kind != io::Tree::Kind::kInteger || number->integer < 0 ||
      number->integer > most)
    return bad(fmt::format("{} is no number up to {}", key, most));
  return number->integer;
}

Result<std::string> word(const io::Tree& tree, std::string_view key) {
  const io::Tree* text = tree.find(key);
  if (text == nullptr || text->kind != io::Tree::Kind::kString) return bad(fmt::format("{} is no text", key));
  return text->text;
}

io::Tree point_of(const TimelinePoint& point) {
  io::Tree bytes = io::Tree::list();
  for (const int64_t count : point.bytes) bytes.items.push_back(io::Tree::of(count));
  return io::Tree::map({{"op_index", io::Tree::of(int64_t{point.position})},
                        {"op", io::Tree::of(std::string(point.op))},
                        {"layer", io::Tree::of(point.layer)},
                        {"phase", io::Tree::of(static_cast<int64_t>(point.phase))},
                        {"bytes", std::move(bytes)}});
}

Result<TimelinePoint> parse_point(const io::Tree& tree, size_t num_classes) {
  TimelinePoint point;
  PLIMSOLL_ASSIGN(const int64_t position, whole(tree, "op_index", INT32_MAX));
  PLIMSOLL_ASSIGN(const std::string op, word(tree, "op"));
  PLIMSOLL_ASSIGN(point.layer, word(tree, "layer"));
  PLIMSOLL_ASSIGN(const int64_t phase, whole(tree, "phase", planner::kNumStepPhases - 1));
  const ir::OpDef* def = ops::find_op(op);
  if (def == nullptr) return bad("no op is called " + op);
  point.position = static_cast<int32_t>(position);
  point.op = def->name;
  point.phase = static_cast<planner::StepPhase>(phase);
  const io::Tree* bytes = tree.find("bytes");
  if (bytes == nullptr || bytes->items.size() != num_classes)
    return bad("a point's bytes are not those of the classes");
  for (size_t c = 0; c < num_classes; ++c) {
    const io::Tree& count = bytes->items[c];
    if (count.kind != io::Tree::Kind::kInteger || count.integer < 0 || count.integer > kMostBytes)
      return bad("a class's bytes are no number");
    point.bytes[c] = count.integer;
  }
  point.total_bytes = planner::total(point.bytes);
  return point;
}

}  // namespace

RunPlan run_plan(const planner::PlanReport& report, const passes::SessionPlan& session) {
  const MemoryTimeline all = planner::memory_timeline(session, planner::peak_program(session));
  RunPlan plan{report.device_is_process, report.planning_seconds, {}};
  MemoryTimeline& kept = plan.timeline;
  kept.program = all.program;
  kept.persistent_bytes = all.persistent_bytes;
  kept.arena_bytes = all.arena_bytes;
  if (all.points.empty()) return plan;
  for (const size_t at : timeline_columns(all, std::min(kMostPoints, all.points.size()))) {
    if (at == all.peak) kept.peak = kept.points.size();
    kept.points.push_back(all.points[at]);
  }
  return plan;
}

std::string run_plan_json(const RunPlan& plan) {
  io::Tree points = io::Tree::list(), classes = io::Tree::list();
  for (size_t c = 0; c < planner::kNumMemoryClasses; ++c)
    classes.items.push_back(io::Tree::of(std::string(planner::name(static_cast<planner::MemoryClass>(c)))));
  for (const TimelinePoint& point : plan.timeline.points) points.items.push_back(point_of(point));
  return io::to_json(io::Tree::map({{"device_is_process", io::Tree::of(plan.device_is_process)},
                                    {"planning_seconds", io::Tree::of(plan.planning_seconds)},
                                    {"program", io::Tree::of(plan.timeline.program)},
                                    {"persistent_bytes", io::Tree::of(plan.timeline.persistent_bytes)},
                                    {"arena_bytes", io::Tree::of(plan.timeline.arena_bytes)},
                                    {"peak", io::Tree::of(static_cast<int64_t>(plan.timeline.peak))},
                                    {"classes", std::move(classes)},
                                    {"points", std::move(points)}}));
}

Result<RunPlan> parse_run_plan(std::string_view text) {
  PLIMSOLL_ASSIGN(const io::Tree tree,
                  io::parse_json(text, {.max_bytes = kMostFileBytes, .max_nodes = 40'000}));
  RunPlan plan;
  MemoryTimeline& timeline = plan.timeline;
  const io::Tree* is_process = tree.find("device_is_process");
  if (is_process == nullptr || is_process->kind != io::Tree::Kind::kBool)
    return bad("device_is_process is no truth value");
  plan.device_is_process = is_process->boolean;
  const io::Tree* seconds = tree.find("planning_seconds");
  if (seconds == nullptr ||
      (seconds->kind != io::Tree::Kind::kNumber && seconds->kind != io::Tree::Kind::kInteger) ||
      !(seconds->number >= 0))
    return bad("planning_seconds is no number");
  plan.planning_seconds = seconds->number;
  PLIMSOLL_ASSIGN(timeline.program, word(tree, "program"));
  PLIMSOLL_ASSIGN(timeline.persistent_bytes, whole(tree, "persistent_bytes", kMostBytes));
  PLIMSOLL_ASSIGN(timeline.arena_bytes, whole(tree, "arena_bytes", kMostBytes));
  const io::Tree *points = tree.find("points"), *classes = tree.find("classes");
  if (points == nullptr || points->items.size() > kMostPoints) return bad("its points are none, or too many");
  // Files of earlier versions lack the last classes: buffers, gathered parameters, FP8 weights, casts.
  const size_t num_classes = classes == nullptr ? 0 : classes->items.size();
  if (num_classes > planner::kNumMemoryClasses || num_classes + 4 < planner::kNumMemoryClasses)
    return bad("its classes are others");
  for (size_t c = 0; c < num_classes; ++c)
    if (classes->items[c].text != planner::name(static_cast<planner::MemoryClass>(c)))
      return bad("its classes are others");
  for (const io::Tree& point : points->items) {
    PLIMSOLL_ASSIGN(TimelinePoint parsed, parse_point(point, num_classes));
    timeline.points.push_back(std::move(parsed));
  }
  PLIMSOLL_ASSIGN(const int64_t peak, whole(tree, "peak", static_cast<int64_t>(kMostPoints)));
  if (!timeline.points.empty() && static_cast<size_t>(peak) >= timeline.points.size())
    return bad("its peak is at none of its points");
  timeline.peak = static_cast<size_t>(peak);
  return plan;
}

}  // namespace plimsoll::telemetry
