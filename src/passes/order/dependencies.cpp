// Each storage remembers its last write and the reads since: a write waits for these, a read for the write.
#include "passes/order/dependencies.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "ir/op_def.h"
#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

struct Touches {
  size_t write = kNone;
  std::vector<size_t> reads = {};
};

class Collector {
 public:
  explicit Collector(const ir::Graph& graph)
      : graph_(graph), groups_(storage_groups(graph, graph.order(), {})) {
    for (const ir::OpId id : graph.order()) {
      const ir::Op& op = graph.op(id);
      if (op.def->state == ir::StateAccess::kAssign)
        assigned_[groups_.index(op.inputs[0])].push_back(&state(op));
    }
    touches_.resize(groups_.groups.size());
    place_of_.assign(graph.num_ops(), kNone);
    for (size_t i = 0; i < graph.order().size(); ++i)
      place_of_[static_cast<size_t>(graph.order()[i].index)] = i;
  }

  Dependencies run() {
    Dependencies deps;
    for (size_t place = 0; place < graph_.order().size(); ++place) {
      before_.clear();
      visit(place);
      std::ranges::sort(before_);
      before_.erase(std::unique(before_.begin(), before_.end()), before_.end());
      deps.before.push_back(before_);
    }
    deps.after = {deps.before.size(), [&](const auto& add) {
                    for (size_t place = 0; place < deps.before.size(); ++place)
                      for (const size_t b : deps.before[place]) add(b, place);
                  }};
    return deps;
  }

 private:
  Touches& state(const ir::Op& op) { return states_[op.attrs.str("name")]; }

  /// The touches of a value's storage: the state's, where it was read from one.
  Touches& of(ir::ValueId v) {
    const StorageGroup& group = groups_.of(v);
    if (group.is_state) return state(graph_.op(graph_.value(group.owner).producer));
    return touches_[static_cast<size_t>(groups_.index(v))];
  }

  void read(Touches& touches, size_t place) {
    if (touches.write != kNone && touches.write != place) before_.push_back(touches.write);
    touches.reads.push_back(place);
  }

  void write(Touches& touches, size_t place) {
    for (const size_t r : touches.reads)
      if (r != place) before_.push_back(r);
    if (touches.write != kNone && touches.write != place) before_.push_back(touches.write);
    touches.write = place;
    touches.reads.clear();
  }

  void visit(size_t place) {
    const ir::Op& op = graph_.op(graph_.order()[place]);
    if (op.def->state == ir::StateAccess::kRead) read(state(op), place);
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) {
        before_.push_back(place_of_[static_cast<size_t>(graph_.value(v).producer.index)]);
        read(of(v), place);
      }
    if (!op.def->is_view)
      for (const ir::Alias& a : ir::op_consumes(op))
        write(of(op.inputs[static_cast<size_t>(a.input)]), place);
    for (const ir::ValueId v : op.outputs) {
      if (groups_.of(v).owner == v && op.def->state != ir::StateAccess::kRead) write(of(v), place);
      if (op.def->is_view) read(of(v), place);
      const auto it = groups_.of(v).owner == v ? assigned_.find(groups_.index(v)) : assigned_.end();
      if (it != assigned_.end())
        for (Touches* t : it->second) write(*t, place);
    }
    if (op.def->state == ir::StateAccess::kAssign) write(state(op), place);
  }

  const ir::Graph& graph_;
  StorageGroups groups_;
  std::vector<Touches> touches_;                                 // by group, of arena storages
  std::unordered_map<std::string_view, Touches> states_;         // by state
  std::unordered_map<int32_t, std::vector<Touches*>> assigned_;  // by group: the states that take its value
  std::vector<size_t> place_of_;                                 // by op
  std::vector<size_t> before_;                                   // of the place that is visited
};

}  // namespace

Dependencies dependencies(const ir::Graph& graph) { return Collector(graph).run(); }

}  // namespace plimsoll::passes
