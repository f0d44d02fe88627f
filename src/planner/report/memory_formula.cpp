// The formula has three terms, each a number of values times the bytes of one. What forward leaves for
// backward is what the arena holds across the loss; everything else is named with its bytes, so that the sum
// is the plan's.
#include <algorithm>
#include <optional>

#include "ir/op_def.h"
#include "planner/report/memory_timeline.h"

namespace plimsoll::planner {
namespace {

MemoryFormula::Term states_of(const passes::SessionPlan& session, ir::StateClass c) {
  MemoryFormula::Term term;
  for (const passes::SessionState& s : session.states) {
    if (s.decl.state_class != c || s.decl.space != ir::MemorySpace::kDevice) continue;
    term.values += s.decl.type.num_elements();
    term.bytes += s.decl.type.bytes().count;
  }
  return term;
}

/// Position of the loss in a program that goes on to gradients.
std::optional<int32_t> trained_loss(const ir::Graph& graph) {
  std::optional<int32_t> loss;
  bool has_backward = false;
  for (size_t i = 0; i < graph.order().size(); ++i) {
    const ir::Op& op = graph.op(graph.order()[i]);
    if (op.def->is_loss) loss = static_cast<int32_t>(i);
    has_backward = has_backward || (loss && op.def->state == ir::StateAccess::kNone && op.block >= 0);
  }
  return has_backward ? loss : std::nullopt;
}

/// What the arena holds across the loss.
MemoryFormula::Term kept_by_forward(const passes::Program& program, int32_t loss) {
  MemoryFormula::Term term;
  std::vector<bool> seen(program.binding.storages.size(), false);
  for (size_t v = 0; v < program.binding.places.size(); ++v) {
    const int32_t index = program.binding.places[v].storage;
    if (index < 0 || seen[static_cast<size_t>(index)]) continue;
    seen[static_cast<size_t>(index)] = true;
    const passes::Storage& s = program.binding.storages[static_cast<size_t>(index)];
    const bool kept = s.state < 0 && s.space == ir::MemorySpace::kDevice && s.first >= 0 && s.first < loss &&
                      s.last > loss && s.category == passes::Category::kActivations;
    if (!kept || s.bytes == 0) continue;
    term.values += program.graph.type(ir::ValueId{static_cast<int32_t>(v)}).num_elements();
    term.bytes += s.bytes;
  }
  return term;
}

/// Of the largest program with a backward pass.
MemoryFormula::Term activations_of(const passes::SessionPlan& session) {
  const passes::Program* largest = nullptr;
  int32_t position = 0;
  for (const passes::Program& program : session.programs) {
    const std::optional<int32_t> loss = trained_loss(program.graph);
    if (!loss) continue;
    if (largest != nullptr && largest->plan.device().arena_bytes >= program.plan.device().arena_bytes)
      continue;
    largest = &program;
    position = *loss;
  }
  return largest == nullptr ? MemoryFormula::Term{} : kept_by_forward(*largest, position);
}

}  // namespace

MemoryFormula memory_formula(const passes::SessionPlan& session, const MemoryTimeline& timeline,
                             int64_t sequences, const std::vector<std::pair<std::string, int64_t>>& rest) {
  MemoryFormula formula;
  formula.sequences = sequences;
  formula.parameters = states_of(session, ir::StateClass::kParameter);
  formula.optimizer_state = states_of(session, ir::StateClass::kOptimizerState);
  formula.activations = activations_of(session);
  formula.plan_bytes = formula.bytes();
  const auto leave_out = [&](std::string label, int64_t bytes) {
    formula.plan_bytes += bytes;
    if (bytes != 0) formula.left_out.emplace_back(std::move(label), bytes);
  };
  const ClassBytes none{};
  const ClassBytes& peak = timeline.points.empty() ? none : timeline.at_peak().bytes;
  for (size_t i = 0; i < kNumMemoryClasses; ++i) {
    const auto c = static_cast<MemoryClass>(i);
    if (c == MemoryClass::kParameters || c == MemoryClass::kOptimizerState) continue;
    leave_out(std::string(name(c)),
              peak[i] - (c == MemoryClass::kActivations ? formula.activations.bytes : 0));
  }
  for (const auto& [label, bytes] : rest) leave_out(label, bytes);
  return formula;
}

}  // namespace plimsoll::planner
