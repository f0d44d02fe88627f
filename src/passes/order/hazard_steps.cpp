// One walk along the graph, in which each value gets the step that writes it: a view its operand's, a copy
// that is done the copy's, the read of a state that of the last assignment.
#include "passes/order/hazard_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/at.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ir/span.h"
#include "memory/hazards.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::ValueId;
using memory::PoolRange;

Error broken(const Op& op, std::string what) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", op.def->name, what), op.layer,
               "this is a bug in the planner"};
}

/// Where the elements lie, one after the other, the same for every shape of them: axes of one element left
/// out, neighbours that go on merged.
std::vector<std::pair<int64_t, int64_t>> path(const ir::Shape& shape, const ir::Strides& strides) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // extent, stride
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == 1) continue;
    const int64_t stride = strides[at(i)];
    if (!runs.empty() && runs.back().second == stride * shape.dim(i))
      runs.back() = {runs.back().first * shape.dim(i), stride};
    else
      runs.emplace_back(shape.dim(i), stride);
  }
  return runs;
}

class Deriver {
 public:
  Deriver(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan, const IssueOrder& order)
      : graph_(graph), binding_(binding), plan_(plan), order_(order) {}

  Result<memory::QueueProgram> run() {
    program_.num_queues = static_cast<int32_t>(ir::kNumAllQueues);
    program_.num_events = order_.num_events;
    if (binding_.places.size() < graph_.num_values() || plan_.offsets.size() != binding_.storages.size())
      return Error{ErrorCode::kInvalidArgument, "the program's storages are not those of its graph"};
    make_pools();
    PLIMSOLL_TRY(take_issues());
    writers_.assign(graph_.num_values(), memory::kBeforeProgram);
    held_.assign(graph_.num_values(), -1);
    for (size_t p = 0; p < graph_.order().size(); ++p) PLIMSOLL_TRY(visit(graph_.order()[p], p));
    for (const auto& [name, state] : states_)
      if (state.taken.empty())
        for (const Part& part : state.parts)
          program_.results.push_back({part_of(state.index, part.begin, part.end), part.writer});
    return std::move(program_);
  }

 private:
  /// Bytes of a state, and the step that has written them.
  struct Part {
    int64_t begin = 0, end = 0;
    int32_t writer = memory::kBeforeProgram;
  };
  /// What a state holds at a point of the walk.
  struct State {
    int32_t index = 0;
    std::vector<Part> parts = {};  ///< all of it, in order; one where nothing was assigned in windows
    std::vector<Part> taken = {};  ///< ops have written over them and nothing was assigned since
  };

  void make_pools() {
    for (const PoolPlan& pool : plan_.pools) program_.pool_bytes.push_back(pool.arena_bytes);
    for (size_t i = 0; i < graph_.states().size(); ++i) {
      const ir::StateDecl& decl = graph_.states()[i];
      program_.pool_bytes.push_back(decl.type.bytes().count);
      states_[decl.name] = {static_cast<int32_t>(i), {{0, decl.type.bytes().count}}};
    }
  }

  [[nodiscard]] static PoolRange part_of(int32_t state, int64_t begin, int64_t end) {
    return {static_cast<int32_t>(ir::kNumSpaces) + state, begin, end};
  }
  [[nodiscard]] PoolRange whole(int32_t state) const {
    return part_of(state, 0, program_.pool_bytes[ir::kNumSpaces + at(state)]);
  }

  // ---- what is issued

  /// Whether the op moves or computes bytes.
  [[nodiscard]] bool runs(ir::OpId id) const {
    const Op& op = graph_.op(id);
    const auto& copied = binding_.copied_assigns;
    if (op.def->state == ir::StateAccess::kAssign)
      return std::find(copied.begin(), copied.end(), id) != copied.end();
    return !op.def->is_view && op.def->state != ir::StateAccess::kRead;
  }

  /// Makes a step of each issue, still without operands; each op that runs has one.
  Status take_issues() {
    using Kind = memory::QueueStep::Kind;
    static constexpr std::array<Kind, 4> kKinds = {Kind::kWork, Kind::kWork, Kind::kRecord, Kind::kWait};
    step_of_.assign(graph_.order().size(), -1);
    for (size_t i = 0; i < order_.issues.size(); ++i) {
      const Issue& issue = order_.issues[i];
      const Kind kind = kKinds[static_cast<size_t>(issue.kind)];
      program_.steps.push_back({kind, static_cast<int32_t>(issue.queue), issue.event});
      if (kind != Kind::kWork) continue;
      if (issue.position < 0 || at(issue.position) >= step_of_.size())
        return Error{ErrorCode::kInvalidArgument, "an issue names an op that is not in the program"};
      PLIMSOLL_TRY(check_issue(issue, graph_.order()[at(issue.position)]));
      step_of_[at(issue.position)] = static_cast<int32_t>(i);
    }
    for (size_t p = 0; p < step_of_.size(); ++p)
      if (const ir::OpId id = graph_.order()[p]; step_of_[p] < 0 && runs(id))
        return broken(graph_.op(id), "is not issued");
    return Ok{};
  }

  Status check_issue(const Issue& issue, ir::OpId id) const {
    const Op& op = graph_.op(id);
    const bool is_copy = op.def->is_copy || op.def->state == ir::StateAccess::kAssign;
    if (!runs(id)) return broken(op, "is issued, and there is nothing to run");
    if (step_of_[at(issue.position)] >= 0) return broken(op, "is issued twice");
    if (issue.queue != op.queue)
      return broken(op, fmt::format("is issued on {}, belongs on {}", name(issue.queue), name(op.queue)));
    if (is_copy != (issue.kind == Issue::Kind::kCopy))
      return broken(op, is_copy ? "is a copy, issued as a kernel" : "has a kernel, is issued as a copy");
    return Ok{};
  }

  // ---- where values lie

  [[nodiscard]] const Place& place(ValueId v) const { return binding_.places[at(v)]; }

  /// The range of `bytes` from `offset` of a storage, as part of what `op` touches.
  Result<PoolRange> range(const Op& op, int32_t storage, int64_t offset, int64_t bytes,
                          ir::MemorySpace space) const {
    if (storage < 0 || at(storage) >= binding_.storages.size()) return broken(op, "a value has no storage");
    const Storage& s = binding_.storages[at(storage)];
    const bool is_state = s.state >= 0;
    const ir::MemorySpace found = is_state ? graph_.states()[at(s.state)].space : s.space;
    if (found != space)
      return broken(op, fmt::format("a value of {} is bound in {}", name(space), name(found)));
    if (is_state) return PoolRange{whole(s.state).pool, offset, offset + bytes};
    const int64_t base = plan_.offsets[at(storage)];
    if (base < 0) return broken(op, "a value has no bytes in the arena");
    return PoolRange{static_cast<int32_t>(space), base + offset, base + offset + bytes};
  }

  Result<PoolRange> range(const Op& op, ValueId v) const {
    const Place& p = place(v);
    return range(op, p.storage, p.offset_bytes, ir::span_bytes(graph_.type(v), p.strides),
                 graph_.value(v).space);
  }

  [[nodiscard]] bool lies_as(ValueId v, const Place& expected, const ir::Shape& shape) const {
    const Place& p = place(v);
    return p.storage == expected.storage && p.offset_bytes == expected.offset_bytes &&
           path(graph_.type(v).shape, p.strides) == path(shape, expected.strides);
  }

  [[nodiscard]] bool is_dense(ValueId v) const {
    const ir::Shape& shape = graph_.type(v).shape;
    return path(shape, place(v).strides) == path(shape, ir::dense_strides(shape));
  }

  /// A view lies within its operand as its definition says.
  Status check_view(const Op& op) const {
    const ir::OpTypes types = ir::op_types(graph_, op);
    const Place& source = place(op.inputs[0]);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto view = op.def->view(types, source.strides, i);
      const int64_t offset = view ? view->offset * ir::bits(types.inputs[0].dtype) / 8 : 0;
      if (!view || !lies_as(op.outputs[i], {source.storage, source.offset_bytes + offset, view->strides},
                            types.outputs[i].shape))
        return broken(op, "a view does not lie where its operand does");
    }
    return Ok{};
  }

  // ---- the walk

  Status visit(ir::OpId id, size_t position) {
    const Op& op = graph_.op(id);
    if (op.def->state == ir::StateAccess::kRead) return read_state(op);
    if (op.def->state == ir::StateAccess::kAssign) return assign_state(op, position);
    if (!op.def->is_view) return work(op, position);
    PLIMSOLL_TRY(check_view(op));
    for (const ValueId out : op.outputs) {
      writers_[at(out)] = writers_[at(op.inputs[0])];
      held_[at(out)] = held_[at(op.inputs[0])];
    }
    return Ok{};
  }

  Status read_state(const Op& op) {
    const State& state = states_.at(op.attrs.str("name"));
    PLIMSOLL_ASSIGN(const PoolRange bytes, range(op, op.outputs[0]));
    if (bytes != whole(state.index)) return broken(op, "the value does not lie in its state");
    if (state.parts.size() > 1) return broken(op, "reads a state that was assigned in windows");
    writers_[at(op.outputs[0])] = state.parts[0].writer;
    held_[at(op.outputs[0])] = state.index;
    return Ok{};
  }

  Status assign_state(const Op& op, size_t position) {
    State& state = states_.at(op.attrs.str("name"));
    PLIMSOLL_ASSIGN(const PoolRange source, range(op, op.inputs[0]));
    const int32_t step = step_of_[position];
    const int64_t begin =
        ir::assigned_elements(graph_, op).begin * ir::bits(graph_.type(op.inputs[0]).dtype) / 8;
    const PoolRange target = part_of(state.index, begin, begin + (source.end - source.first));
    put(state, {target.first, target.end, step >= 0 ? step : writers_[at(op.inputs[0])]});
    if (!is_dense(op.inputs[0])) return broken(op, "the value is not dense");
    if (step < 0 && source != target)
      return broken(op, "the value neither lies in its state nor is copied there");
    if (step < 0) return Ok{};
    program_.steps[at(step)].reads.push_back({source, writers_[at(op.inputs[0])]});
    program_.steps[at(step)].writes.push_back({target});
    return Ok{};
  }

  /// From now on the state's bytes there are that step's.
  static void put(State& state, const Part& now) {
    std::vector<Part> parts;
    for (const Part& part : state.parts) {
      if (part.begin < now.begin) parts.push_back({part.begin, std::min(part.end, now.begin), part.writer});
      if (part.begin <= now.begin && now.begin < part.end) parts.push_back(now);
      if (part.end > now.end) parts.push_back({std::max(part.begin, now.end), part.end, part.writer});
    }
    state.parts = std::move(parts);
    std::erase_if(state.taken, [&](const Part& t) { return now.begin <= t.begin && t.end <= now.end; });
  }

  Status work(const Op& op, size_t position) {
    const int32_t number = step_of_[position];
    memory::QueueStep& step = program_.steps[at(number)];
    std::vector<int32_t> read_of(op.inputs.size(), -1);  // by operand
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i].valid()) continue;
      PLIMSOLL_ASSIGN(const PoolRange bytes, range(op, op.inputs[i]));
      read_of[i] = static_cast<int32_t>(step.reads.size());
      step.reads.push_back({bytes, writers_[at(op.inputs[i])]});
    }
    PLIMSOLL_ASSIGN(const std::vector<int32_t> over, operands_under_results(op));
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      PLIMSOLL_ASSIGN(const PoolRange bytes, range(op, op.outputs[i]));
      step.writes.push_back({bytes, over[i] < 0 ? -1 : read_of[at(over[i])]});
      writers_[at(op.outputs[i])] = number;
    }
    if (op.def->is_copy && !(is_dense(op.inputs[0]) && is_dense(op.outputs[0])))
      return broken(op, "a copy's operand or result is not dense");
    const int32_t workspace = position < binding_.workspaces.size() ? binding_.workspaces[position] : -1;
    if (workspace < 0) return Ok{};
    const int64_t size =
        at(workspace) < binding_.storages.size() ? binding_.storages[at(workspace)].bytes : 0;
    PLIMSOLL_ASSIGN(const PoolRange scratch, range(op, workspace, 0, size, ir::kernel_space(op.queue)));
    step.writes.push_back({scratch});
    return Ok{};
  }

  /// By result: the operand in whose place it lies as the op allows, or -1. Marks states that are consumed.
  Result<std::vector<int32_t>> operands_under_results(const Op& op) {
    std::vector<int32_t> over(op.outputs.size(), -1);
    const auto lies_over = [&](const ir::Alias& a) {
      const ValueId in = op.inputs[at(a.input)];
      return lies_as(op.outputs[at(a.output)], place(in), graph_.type(in).shape);
    };
    for (const ir::Alias& a : op.def->in_place)
      if (at(a.output) < op.outputs.size() && at(a.input) < op.inputs.size() &&
          op.inputs[at(a.input)].valid() && lies_over(a))
        over[at(a.output)] = a.input;
    for (const ir::Alias& a : ir::op_consumes(op)) {
      if (!lies_over(a)) return broken(op, "a result does not lie where the operand that it consumes does");
      over[at(a.output)] = a.input;
      const int32_t state = held_[at(op.inputs[at(a.input)])];
      held_[at(op.outputs[at(a.output)])] = state;
      if (state < 0) continue;
      PLIMSOLL_ASSIGN(const PoolRange taken, range(op, op.inputs[at(a.input)]));
      states_.at(graph_.states()[at(state)].name).taken.push_back({taken.first, taken.end});
    }
    return over;
  }

  const ir::Graph& graph_;
  const Binding& binding_;
  const MemoryPlan& plan_;
  const IssueOrder& order_;
  memory::QueueProgram program_;
  std::vector<int32_t> step_of_;                      // by position in the order; -1: runs nothing
  std::vector<int32_t> writers_;                      // by value
  std::vector<int32_t> held_;                         // by value: the state whose content it is, or -1
  std::map<std::string, State, std::less<>> states_;  // by name
};

}  // namespace

Result<memory::QueueProgram> hazard_steps(const ir::Graph& graph, const Binding& binding,
                                          const MemoryPlan& plan, const IssueOrder& order) {
  return Deriver(graph, binding, plan, order).run();
}

}  // namespace plimsoll::passes
