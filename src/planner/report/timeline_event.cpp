#include <algorithm>

#include "planner/report/memory_timeline.h"

namespace plimsoll::planner {
namespace {

io::Tree text(std::string_view value) { return io::Tree::of(std::string(value)); }

/// Classes that any point has.
std::vector<MemoryClass> classes_of(const MemoryTimeline& timeline) {
  std::vector<MemoryClass> classes;
  for (size_t c = 0; c < kNumMemoryClasses; ++c)
    if (std::any_of(timeline.points.begin(), timeline.points.end(),
                    [&](const TimelinePoint& p) { return p.bytes[c] != 0; }))
      classes.push_back(static_cast<MemoryClass>(c));
  return classes;
}

io::Tree point_tree(const TimelinePoint& point, const std::vector<MemoryClass>& classes) {
  io::Tree bytes = io::Tree::map();
  for (const MemoryClass c : classes) bytes.set(name(c), io::Tree::of(of(point.bytes, c)));
  return io::Tree::map({{"op_index", io::Tree::of(int64_t{point.position})},
                        {"op", text(point.op)},
                        {"layer", text(point.layer)},
                        {"phase", text(name(point.phase))},
                        {"total_bytes", io::Tree::of(point.total_bytes)},
                        {"bytes", std::move(bytes)}});
}

io::Tree tensor_tree(const TimelineTensor& tensor) {
  const auto op = [](int32_t position) {
    return position < 0 ? io::Tree{} : io::Tree::of(int64_t{position});
  };
  const size_t bracket = tensor.type.find('[');
  const bool has_shape = bracket != std::string::npos;
  return io::Tree::map({{"name", text(tensor.name)},
                        {"dtype", has_shape ? text(tensor.type.substr(0, bracket)) : io::Tree{}},
                        {"shape", has_shape ? text(tensor.type.substr(bracket)) : io::Tree{}},
                        {"class", text(name(tensor.memory_class))},
                        {"bytes", io::Tree::of(tensor.bytes)},
                        {"from_op", op(tensor.first)},
                        {"to_op", op(tensor.last)}});
}

io::Tree phase_tree(const TimelinePhase& phase) {
  return io::Tree::map({{"phase", text(name(phase.phase))},
                        {"program", text(phase.program)},
                        {"ops", io::Tree::of(phase.num_ops)},
                        {"peak_bytes", io::Tree::of(phase.peak.total_bytes)},
                        {"op_index", io::Tree::of(int64_t{phase.peak.position})},
                        {"op", text(phase.peak.op)},
                        {"layer", text(phase.peak.layer)}});
}

io::Tree formula_tree(const MemoryFormula& formula) {
  const auto term = [](const MemoryFormula::Term& t) {
    return io::Tree::map({{"values", io::Tree::of(t.values)}, {"bytes", io::Tree::of(t.bytes)}});
  };
  io::Tree left_out = io::Tree::map();
  for (const auto& [label, bytes] : formula.left_out) left_out.set(label, io::Tree::of(bytes));
  return io::Tree::map({{"sequences", io::Tree::of(formula.sequences)},
                        {"parameters", term(formula.parameters)},
                        {"activations", term(formula.activations)},
                        {"optimizer_state", term(formula.optimizer_state)},
                        {"bytes", io::Tree::of(formula.bytes())},
                        {"left_out", std::move(left_out)},
                        {"plan_bytes", io::Tree::of(formula.plan_bytes)}});
}

}  // namespace

io::Tree timeline_event(const MemoryTimeline& timeline, const MemoryFormula& formula) {
  constexpr size_t kTensors = 10;
  const std::vector<MemoryClass> classes = classes_of(timeline);
  std::vector<io::Tree> points, tensors, phases;
  for (const TimelinePoint& point : timeline.points) points.push_back(point_tree(point, classes));
  for (size_t i = 0; i < timeline.measured.bytes.size(); ++i)
    points[i].set("measured_bytes", io::Tree::of(timeline.measured.bytes[i]));
  for (size_t i = 0; i < std::min(kTensors, timeline.alive.size()); ++i)
    tensors.push_back(tensor_tree(timeline.alive[i]));
  for (const TimelinePhase& phase : timeline.phases) phases.push_back(phase_tree(phase));
  io::Tree peak;
  if (!timeline.points.empty()) {
    peak = point_tree(timeline.at_peak(), classes);
    peak.set("tensors", io::Tree::list(std::move(tensors)));
  }
  return io::Tree::map({{"event", text("memory_timeline")},
                        {"program", text(timeline.program)},
                        {"persistent_bytes", io::Tree::of(timeline.persistent_bytes)},
                        {"arena_bytes", io::Tree::of(timeline.arena_bytes)},
                        {"peak", std::move(peak)},
                        {"phases", io::Tree::list(std::move(phases))},
                        {"formula", formula_tree(formula)},
                        {"points", io::Tree::list(std::move(points))}});
}

}  // namespace plimsoll::planner
