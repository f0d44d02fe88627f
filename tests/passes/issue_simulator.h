// From a planned program to what queue_simulator.h runs, byte by byte: contents are named by the op that
// makes them and followed through the graph alone. Shares nothing with check_hazards.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "memory/queue_simulator.h"
#include "ops/broadcast.h"
#include "passes/order/issue_order.h"

namespace plimsoll::fixtures {

/// Bytes that lie together and hold contents that follow each other.
struct ByteRun {
  int32_t pool = 0;
  int64_t first = 0, end = 0;
  int64_t content = 0;  ///< of the first byte
};

class IssueSimulator {
 public:
  IssueSimulator(const ir::Graph& graph, const passes::Binding& binding, const passes::MemoryPlan& plan)
      : graph_(graph), binding_(binding), plan_(plan) {
    contents_.resize(graph_.num_values());
    for (const ir::StateDecl& decl : graph_.states()) {
      state_bytes_[decl.name] = named(++num_names_, decl.type.bytes().count);
      initial_runs_.push_back({state_pool(decl.name), 0, decl.type.bytes().count, num_names_ * kNameStep});
    }
    for (size_t p = 0; p < graph_.order().size(); ++p) visit(graph_.order()[p], static_cast<int32_t>(p));
    for (const auto& [name, bytes] : state_bytes_)
      if (!taken_.contains(name)) add(results_, state_pool(name), 0, bytes);
    cut();
  }

  /// The program issued in that order.
  SimulatedProgram program(const passes::IssueOrder& order) const {
    SimulatedProgram program{.num_queues = static_cast<int32_t>(ir::kNumAllQueues),
                             .initial = std::vector<int64_t>(cells_.size()),
                             .steps = {}};
    each_cell(initial_runs_,
              [&](int32_t c, int64_t content) { program.initial[static_cast<size_t>(c)] = content; });
    each_cell(results_, [&](int32_t c, int64_t content) { program.results.push_back({c, content}); });
    for (const passes::Issue& issue : order.issues) {
      SimulatedStep step{.queue = static_cast<int32_t>(issue.queue), .event = issue.event};
      if (issue.kind == passes::Issue::Kind::kRecord) step.kind = SimulatedStep::Kind::kRecord;
      if (issue.kind == passes::Issue::Kind::kWait) step.kind = SimulatedStep::Kind::kWait;
      if (issue.position >= 0) touch(touches_.at(issue.position), step);
      program.steps.push_back(std::move(step));
    }
    return program;
  }

 private:
  static constexpr int64_t kNameStep = int64_t{1} << 24;  // more than a value has bytes
  using Contents = std::vector<int64_t>;                  // by byte of the dense value

  struct Touches {
    std::vector<std::vector<ByteRun>> reads;  ///< by operand
    std::vector<bool> in_place;               ///< by operand
    std::vector<ByteRun> writes;
    std::vector<ByteRun> scratch;
  };

  static Contents named(int64_t name, int64_t bytes) {
    Contents contents(static_cast<size_t>(bytes));
    for (size_t i = 0; i < contents.size(); ++i) contents[i] = name * kNameStep + static_cast<int64_t>(i);
    return contents;
  }

  // ---- contents

  Contents& of(ir::ValueId v) { return contents_[static_cast<size_t>(v.index)]; }
  [[nodiscard]] const passes::Place& place(ir::ValueId v) const {
    return binding_.places[static_cast<size_t>(v.index)];
  }
  [[nodiscard]] int64_t element_bytes(ir::ValueId v) const { return ir::bits(graph_.type(v).dtype) / 8; }

  void show(const ir::Op& op) {
    const Contents source = of(op.inputs[0]);
    if (op.def->name != "split") return show_elements(op, source);
    const int64_t width = graph_.type(op.inputs[0]).shape.dim(-1) * element_bytes(op.inputs[0]);
    int64_t column = 0;
    for (const ir::ValueId out : op.outputs) {
      const int64_t bytes = graph_.type(out).shape.dim(-1) * element_bytes(out);
      for (int64_t row = 0; row < graph_.type(out).shape.num_rows(); ++row)
        of(out).insert(of(out).end(), source.begin() + row * width + column,
                       source.begin() + row * width + column + bytes);
      column += bytes;
    }
  }

  /// The elements of a view of one result, where its definition finds them in a dense operand.
  void show_elements(const ir::Op& op, const Contents& source) {
    const ir::OpTypes types = ir::op_types(graph_, op);
    const ir::Shape& shape = types.outputs[0].shape;
    const auto view = op.def->view(types, ir::dense_strides(types.inputs[0].shape), 0);
    const int64_t bytes = element_bytes(op.outputs[0]);
    Contents& shown = of(op.outputs[0]);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const auto from = source.begin() + (view->offset + ops::offset_of(shape, i, view->strides)) * bytes;
      shown.insert(shown.end(), from, from + bytes);
    }
  }

  void visit(ir::OpId id, int32_t position) {
    const ir::Op& op = graph_.op(id);
    if (op.def->is_view) return show(op);
    if (op.def->name == "state") {
      of(op.outputs[0]) = state_bytes_.at(op.attrs.str("name"));
      return;
    }
    Touches& touches = touches_[position];
    for (const ir::ValueId v : op.inputs) {
      touches.reads.emplace_back();
      touches.in_place.push_back(false);
      if (v.valid()) add(touches.reads.back(), v);
    }
    if (op.def->name == "state_assign") {
      const std::string& name = op.attrs.str("name");
      const ir::AssignedElements elements = ir::assigned_elements(graph_, op);
      const int64_t begin = elements.begin * element_bytes(op.inputs[0]);
      if (!elements.is_window) state_bytes_[name] = of(op.inputs[0]);
      std::ranges::copy(of(op.inputs[0]), state_bytes_[name].begin() + begin);
      taken_.erase(name);
      add(touches.writes, state_pool(name), begin, of(op.inputs[0]));
      return;
    }
    note_places(op, touches);
    for (const ir::ValueId out : op.outputs) {
      of(out) = op.def->is_copy ? of(op.inputs[0]) : named(++num_names_, graph_.type(out).bytes().count);
      add(touches.writes, out);
    }
    if (const int32_t w = binding_.workspaces[static_cast<size_t>(position)]; w >= 0) {
      const auto [pool, base] = base_of(w);
      touches.scratch.push_back({pool, base, base + binding_.storages[static_cast<size_t>(w)].bytes, 0});
    }
  }

  void note_places(const ir::Op& op, Touches& touches) {
    const auto consumed = ir::op_consumes(op);
    for (const auto* aliases : {&consumed, &op.def->in_place})
      for (const ir::Alias& a : *aliases) {
        const auto i = static_cast<size_t>(a.input), o = static_cast<size_t>(a.output);
        if (i >= op.inputs.size() || o >= op.outputs.size() || !op.inputs[i].valid()) continue;
        const passes::Place &from = place(op.inputs[i]), &to = place(op.outputs[o]);
        if (from.storage == to.storage && from.offset_bytes == to.offset_bytes) touches.in_place[i] = true;
      }
    for (const ir::Alias& a : consumed)
      if (const int state = storage(op.inputs[static_cast<size_t>(a.input)]).state; state >= 0)
        taken_.insert(graph_.states()[static_cast<size_t>(state)].name);
  }

  // ---- bytes

  [[nodiscard]] const passes::Storage& storage(ir::ValueId v) const {
    return binding_.storages[static_cast<size_t>(place(v).storage)];
  }
  [[nodiscard]] int32_t state_pool(const std::string& name) const {
    for (size_t i = 0; i < graph_.states().size(); ++i)
      if (graph_.states()[i].name == name) return static_cast<int32_t>(ir::kNumSpaces + i);
    return -1;
  }
  /// Pool and first byte of a storage.
  [[nodiscard]] std::pair<int32_t, int64_t> base_of(int32_t index) const {
    const passes::Storage& s = binding_.storages[static_cast<size_t>(index)];
    if (s.state >= 0) return {static_cast<int32_t>(ir::kNumSpaces) + s.state, 0};
    return {static_cast<int32_t>(s.space), plan_.offsets[static_cast<size_t>(index)]};
  }

  static void add(std::vector<ByteRun>& runs, int32_t pool, int64_t byte, const Contents& contents) {
    for (const int64_t content : contents) {
      const bool goes_on = !runs.empty() && runs.back().pool == pool && runs.back().end == byte &&
                           runs.back().content + (byte - runs.back().first) == content;
      if (!goes_on) runs.push_back({pool, byte, byte, content});
      runs.back().end = ++byte;
    }
  }

  void add(std::vector<ByteRun>& runs, ir::ValueId v) {
    const auto [pool, base] = base_of(place(v).storage);
    const ir::Shape& shape = graph_.type(v).shape;
    const int64_t size = element_bytes(v);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      int64_t element = 0, rest = i;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        element += rest % shape.dim(axis) * place(v).strides[static_cast<size_t>(axis)];
        rest /= shape.dim(axis);
      }
      const auto first = of(v).begin() + i * size;
      add(runs, pool, base + place(v).offset_bytes + element * size, Contents(first, first + size));
    }
  }

  // ---- cells: bytes between which no run begins or ends

  void cut() {
    const auto mark = [&](const std::vector<ByteRun>& runs) {
      for (const ByteRun& r : runs) {
        cells_.emplace(std::pair(r.pool, r.first), 0);
        cells_.emplace(std::pair(r.pool, r.end), 0);
      }
    };
    mark(initial_runs_);
    mark(results_);
    for (const auto& [position, touches] : touches_) {
      for (const auto& runs : touches.reads) mark(runs);
      mark(touches.writes);
      mark(touches.scratch);
    }
    int32_t number = 0;
    for (auto& [start, cell] : cells_) cell = number++;
  }

  template <typename Visit>
  void each_cell(const std::vector<ByteRun>& runs, Visit visit) const {
    for (const ByteRun& r : runs)
      for (auto it = cells_.find({r.pool, r.first}); it->first.second < r.end; ++it)
        visit(it->second, r.content + (it->first.second - r.first));
  }

  void touch(const Touches& touches, SimulatedStep& step) const {
    for (size_t i = 0; i < touches.reads.size(); ++i)
      each_cell(touches.reads[i], [&](int32_t c, int64_t content) {
        step.reads.push_back({c, content, touches.in_place[i]});
      });
    each_cell(touches.writes, [&](int32_t c, int64_t content) { step.writes.push_back({c, content}); });
    each_cell(touches.scratch, [&](int32_t c, int64_t) { step.scratch.push_back(c); });
  }

  const ir::Graph& graph_;
  const passes::Binding& binding_;
  const passes::MemoryPlan& plan_;
  int64_t num_names_ = 0;
  std::vector<Contents> contents_;               // by value
  std::map<std::string, Contents> state_bytes_;  // at a point of the walk
  std::set<std::string> taken_;                  // states that an op has written over
  std::map<int32_t, Touches> touches_;           // by position
  std::vector<ByteRun> initial_runs_, results_;
  std::map<std::pair<int32_t, int64_t>, int32_t> cells_;  // by pool and first byte
};

}  // namespace plimsoll::fixtures
