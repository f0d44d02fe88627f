// One sweep: a storage adds its bytes at the op that makes it and takes them away behind the last that
// touches it. Between two ops that run something no storage begins, so the others can be left out.
#include "planner/report/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "ir/op_def.h"
#include "optimizers/optimizer.h"
#include "passes/training/fp8_weights.h"
#include "passes/training/weight_casts.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

bool runs_something(const ir::Op& op) { return !op.def->is_view && op.def->state == ir::StateAccess::kNone; }

void add(ClassBytes& bytes, MemoryClass c, int64_t count) { bytes[static_cast<size_t>(c)] += count; }

bool is_in_arena(const passes::Storage& s) {
  return s.space == MemorySpace::kDevice && s.state < 0 && s.bytes > 0 && s.first >= 0;
}

/// Where the phases of a program lie in its order.
class Phases {
 public:
  explicit Phases(const ir::Graph& graph) {
    for (size_t i = 0; i < graph.order().size(); ++i) {
      const ir::Op& op = graph.op(graph.order()[i]);
      if (op.def->is_loss && !loss_) loss_ = i;
      if (op.def->reads_gradients) differentiates_ = true;
      if (op.def->state != ir::StateAccess::kAssign) continue;
      const ir::StateDecl* state = graph.find_state(op.attrs.str("name"));
      if (state != nullptr && state->state_class == ir::StateClass::kGradient) differentiates_ = true;
    }
  }
  [[nodiscard]] StepPhase of(const ir::Op& op, size_t position) const {
    if (op.block == ir::kUpdateBlock || (!loss_ && differentiates_)) return StepPhase::kUpdate;
    if (op.def->is_loss) return StepPhase::kLoss;
    if (!loss_ || position < *loss_) return StepPhase::kForward;
    return differentiates_ ? StepPhase::kBackward : StepPhase::kLoss;
  }

 private:
  std::optional<size_t> loss_;
  bool differentiates_ = false;
};

/// By position, what begins there and what has ended before.
std::vector<ClassBytes> changes(const passes::Program& program) {
  std::vector<ClassBytes> change(program.graph.order().size() + 1);
  for (const passes::Storage& s : program.binding.storages) {
    if (!is_in_arena(s)) continue;
    const int64_t padding = round_up(s.bytes, passes::kStorageAlignment) - s.bytes;
    const auto first = static_cast<size_t>(s.first), after = static_cast<size_t>(s.last) + 1;
    add(change[first], class_of(s.category), s.bytes);
    add(change[first], MemoryClass::kPadding, padding);
    add(change[after], class_of(s.category), -s.bytes);
    add(change[after], MemoryClass::kPadding, -padding);
  }
  return change;
}

std::vector<TimelinePoint> sweep(const passes::SessionPlan& session, const passes::Program& program) {
  const ir::Graph& graph = program.graph;
  const Phases phases(graph);
  const std::vector<ClassBytes> change = changes(program);
  ClassBytes now = state_bytes(session);
  add(now, MemoryClass::kFragmentation, program.plan.device().fragmentation_bytes());
  std::vector<TimelinePoint> points;
  for (size_t i = 0; i < graph.order().size(); ++i) {
    for (size_t c = 0; c < kNumMemoryClasses; ++c) now[c] += change[i][c];
    const ir::Op& op = graph.op(graph.order()[i]);
    if (!runs_something(op)) continue;
    points.push_back({static_cast<int32_t>(i), op.def->name, op.layer, phases.of(op, i), now, total(now)});
  }
  return points;
}

/// Types of the first values that lie in each storage.
std::vector<std::string> types_of(const passes::Program& program) {
  std::vector<std::string> types(program.binding.storages.size());
  for (size_t v = 0; v < program.binding.places.size(); ++v) {
    const int32_t s = program.binding.places[v].storage;
    if (s >= 0 && types[static_cast<size_t>(s)].empty())
      types[static_cast<size_t>(s)] = ir::to_string(program.graph.type(ir::ValueId{static_cast<int32_t>(v)}));
  }
  return types;
}

/// Names of gradients in the arena, by storage, as accumulators have them: an update takes a parameter, or
/// its master, and behind it the gradient.
std::vector<std::string> gradient_names(const passes::Program& program) {
  std::vector<std::string> names(program.binding.storages.size());
  const auto storage_of = [&](ir::ValueId v) {
    return v.valid() ? program.binding.places[static_cast<size_t>(v.index)].storage : -1;
  };
  for (const ir::OpId id : program.graph.order()) {
    const ir::Op& op = program.graph.op(id);
    for (size_t i = 0; op.block == ir::kUpdateBlock && i + 1 < op.inputs.size(); ++i) {
      const int32_t updated = storage_of(op.inputs[i]), gradient = storage_of(op.inputs[i + 1]);
      if (updated < 0 || gradient < 0) continue;
      const passes::Storage& g = program.binding.storages[static_cast<size_t>(gradient)];
      const int state = program.binding.storages[static_cast<size_t>(updated)].state;
      if (state < 0 || g.state >= 0 || g.category != passes::Category::kGradients) continue;
      const ir::StateDecl& decl = program.graph.states()[static_cast<size_t>(state)];
      if (decl.state_class == ir::StateClass::kParameter)
        names[static_cast<size_t>(gradient)] = "grad." + decl.name;
      else if (decl.state_class == ir::StateClass::kMasterWeight)
        names[static_cast<size_t>(gradient)] = "grad." + decl.name.substr(optimizers::master_name("").size());
    }
  }
  return names;
}

std::vector<TimelineTensor> alive_at(const passes::SessionPlan& session, const passes::Program& program,
                                     int32_t position) {
  std::vector<TimelineTensor> alive;
  for (const passes::SessionState& s : session.states)
    if (s.decl.space == MemorySpace::kDevice)
      alive.push_back({s.decl.name, ir::to_string(s.decl.type), class_of(s.decl), s.decl.type.bytes().count});
  const std::vector<std::string> types = types_of(program), gradients = gradient_names(program);
  for (size_t i = 0; i < program.binding.storages.size(); ++i) {
    const passes::Storage& s = program.binding.storages[i];
    if (!is_in_arena(s) || s.first > position || s.last < position) continue;
    const ir::Op& op = program.graph.op(s.producer);
    const std::string made_by = fmt::format("{}{}{}", op.layer, op.layer.empty() ? "" : " ", op.def->name);
    alive.push_back({gradients[i].empty() ? made_by : gradients[i], types[i], class_of(s.category), s.bytes,
                     s.first, s.last});
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return alive;
}

void add_phases(const MemoryTimeline& timeline, std::vector<TimelinePhase>& phases) {
  for (size_t p = 0; p < kNumStepPhases; ++p) {
    TimelinePhase found{static_cast<StepPhase>(p), timeline.program, 0, {}};
    for (const TimelinePoint& point : timeline.points) {
      if (point.phase != found.phase) continue;
      if (found.num_ops++ == 0 || point.total_bytes > found.peak.total_bytes) found.peak = point;
    }
    if (found.num_ops > 0) phases.push_back(std::move(found));
  }
}

}  // namespace

std::string_view name(MemoryClass c) {
  static constexpr std::array<std::string_view, kNumMemoryClasses> kNames = {
      "parameters",  "master_weights", "optimizer_state", "kv_cache",
      "inputs",      "outputs",        "scalars",         "scaler",
      "constants",   "gradients",      "activations",     "workspace",
      "padding",     "fragmentation",  "buffers",         "gathered_parameters",
      "fp8_weights", "weight_casts"};
  return kNames[static_cast<size_t>(c)];
}

MemoryClass class_of(const ir::StateDecl& state) {
  using enum ir::StateClass;
  switch (state.state_class) {
    case kParameter:
      return MemoryClass::kParameters;
    case kMasterWeight:
      return MemoryClass::kMasterWeights;
    case kGradient:
      return MemoryClass::kGradients;
    case kOptimizerState:
      return MemoryClass::kOptimizerState;
    case kScaler:
      return MemoryClass::kScaler;
    case kScalars:
      return MemoryClass::kScalars;
    case kInput:
      return MemoryClass::kInputs;
    case kOutput:
      return MemoryClass::kOutputs;
    case kConstant:
      return MemoryClass::kConstants;
    case kCache:
      return passes::is_fp8_weight(state)    ? MemoryClass::kFp8Weights
             : passes::is_weight_cast(state) ? MemoryClass::kWeightCasts
                                             : MemoryClass::kCache;
    case kBuffer:
      return MemoryClass::kBuffers;
  }
  PLIMSOLL_CHECK(false, "a class of states");
}

MemoryClass class_of(passes::Category c) {
  using enum passes::Category;
  return c == kGradients   ? MemoryClass::kGradients
         : c == kWorkspace ? MemoryClass::kWorkspace
         : c == kGathered  ? MemoryClass::kGatheredParameters
                           : MemoryClass::kActivations;
}

int64_t total(const ClassBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

std::string_view name(StepPhase phase) {
  static constexpr std::array<std::string_view, kNumStepPhases> kNames = {"forward", "loss", "backward",
                                                                          "update"};
  return kNames[static_cast<size_t>(phase)];
}

ClassBytes state_bytes(const passes::SessionPlan& session) {
  ClassBytes bytes{};
  for (const passes::SessionState& s : session.states)
    if (s.decl.space == MemorySpace::kDevice) add(bytes, class_of(s.decl), s.decl.type.bytes().count);
  add(bytes, MemoryClass::kPadding, session.device().persistent - total(bytes));
  return bytes;
}

int64_t MemoryTimeline::most_bytes() const {
  int64_t most = at_peak().total_bytes;
  for (size_t i = 0; i < measured.bytes.size(); ++i) most = std::max(most, measured.at(i));
  return most;
}

size_t peak_program(const passes::SessionPlan& session) {
  const auto largest = std::max_element(session.programs.begin(), session.programs.end(),
                                        [](const passes::Program& a, const passes::Program& b) {
                                          return a.plan.device().arena_bytes < b.plan.device().arena_bytes;
                                        });
  return static_cast<size_t>(largest - session.programs.begin());
}

MemoryTimeline memory_timeline(const passes::SessionPlan& session, size_t index) {
  const passes::Program& program = session.programs[index];
  MemoryTimeline timeline;
  timeline.program = program.graph.name;
  timeline.persistent_bytes = session.device().persistent;
  timeline.arena_bytes = program.plan.device().arena_bytes;
  timeline.points = sweep(session, program);
  const auto peak = std::max_element(
      timeline.points.begin(), timeline.points.end(),
      [](const TimelinePoint& a, const TimelinePoint& b) { return a.total_bytes < b.total_bytes; });
  timeline.peak = static_cast<size_t>(peak - timeline.points.begin());
  if (peak != timeline.points.end()) timeline.alive = alive_at(session, program, peak->position);
  add_phases(timeline, timeline.phases);
  const int update = session.find_program({passes::ProgramRole::kUpdate});
  if (update >= 0 && passes::accumulates(program.id.role)) {
    MemoryTimeline other;
    other.program = passes::name(passes::ProgramRole::kUpdate);
    other.points = sweep(session, session.programs[static_cast<size_t>(update)]);
    add_phases(other, timeline.phases);
  }
  return timeline;
}

}  // namespace plimsoll::planner
