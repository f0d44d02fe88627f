// Each storage remembers its last write and the reads since: a write waits for these, a read for the write.
#include "passes/dependencies.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/op_def.h"
#include "passes/storage_groups.h"

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
    deps_.before.resize(graph_.order().size());
    deps_.after.resize(graph_.order().size());
    for (size_t place = 0; place < graph_.order().size(); ++place) visit(place);
    for (auto& list : deps_.before) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    for (size_t place = 0; place < deps_.before.size(); ++place)
      for (const size_t b : deps_.before[place]) deps_.after[b].push_back(place);
    return std::move(deps_);
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
    if (touches.write != kNone && touches.write != place) deps_.before[place].push_back(touches.write);
    touches.reads.push_back(place);
  }

  void write(Touches& touches, size_t place) {
    for (const size_t r : touches.reads)
      if (r != place) deps_.before[place].push_back(r);
    if (touches.write != kNone && touches.write != place) deps_.before[place].push_back(touches.write);
    touches.write = place;
    touches.reads.clear();
  }

  void visit(size_t place) {
    const ir::Op& op = graph_.op(graph_.order()[place]);
    if (op.def->state == ir::StateAccess::kRead) read(state(op), place);
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) {
        deps_.before[place].push_back(place_of_[static_cast<size_t>(graph_.value(v).producer.index)]);
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
  std::vector<Touches> touches_;                       // by group, of arena storages
  std::map<std::string, Touches> states_;              // by state
  std::map<int32_t, std::vector<Touches*>> assigned_;  // by group: the states that take its value
  std::vector<size_t> place_of_;                       // by op
  Dependencies deps_;
};

}  // namespace

Dependencies dependencies(const ir::Graph& graph) { return Collector(graph).run(); }

}  // namespace plimsoll::passes
