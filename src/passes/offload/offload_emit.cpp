// The offload walk, written down as ops of a new graph.
#include "passes/offload/offload_emit.h"

#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "passes/offload/offload_walk.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The visitor that writes.
class Emitter {
 public:
  using Handle = ValueId;
  static constexpr ValueId kNone = {};

  Emitter(const ir::Graph& graph, const OffloadOptions& options, const OffloadItems& items)
      : old_(graph),
        items_(items),
        offloaded_(items.items.size()),
        loaded_(items.loads.size()),
        copied_for_(items.stores.size()) {
    result_.graph.name = graph.name;
    result_.replaced.resize(graph.num_values());
    for (ir::StateDecl decl : graph.states()) {
      decl.space = decl.space == MemorySpace::kDevice ? offloaded_space(options, decl) : decl.space;
      result_.graph.declare_state(decl);
    }
  }

  OffloadedGraph run() {
    const OffloadPlaces places(items_, static_cast<int32_t>(old_.order().size()));
    OffloadWalk(old_, places, *this).run();
    return std::move(result_);
  }

  void go_to(int32_t place) {
    place_ = at(place);
    if (place_ < old_.order().size()) where_ = &old_.op(old_.order()[place_]);
  }
  [[nodiscard]] const ir::OpDef& def() const { return *where_->def; }
  [[nodiscard]] std::span<const ValueId> inputs() const { return where_->inputs; }
  [[nodiscard]] std::span<const ValueId> outputs() const { return where_->outputs; }
  [[nodiscard]] ValueId made(ValueId v) const { return result_.replaced[at(v)]; }

  // ---- loads

  ValueId read_offloaded(const OffloadItem& item, Moment) {
    return append_one(old_.op(old_.value(item.value).producer), old_.type(item.value));
  }
  ValueId part(int32_t l, ValueId source, bool) {
    return offloaded(items_.loads[at(l)].part, items_.loads[at(l)].item, source);
  }
  ValueId start_load(int32_t l, ValueId source) {
    return copy_start(source, items_.loads[at(l)].to, user_of(l));
  }
  ValueId end_load(int32_t l, ValueId source, ValueId copy) {
    const OffloadLoad& load = items_.loads[at(l)];
    const ValueId done = copy_done(copy, source, user_of(l));
    loaded_[at(l)][load.part.valid() ? load.part : items_.items[at(load.item)].value] = done;
    return done;
  }
  ValueId loaded(ValueId v, int32_t l, ValueId, bool) { return view_in(loaded_[at(l)], v); }
  ValueId offloaded(ValueId v, int32_t item, ValueId source) {
    std::map<ValueId, ValueId>& there = offloaded_[at(item)];
    there[items_.items[at(item)].value] = source;
    return view_in(there, v);
  }

  // ---- stores

  ValueId start_store(int32_t s, ValueId source) {
    const OffloadStore& store = items_.stores[at(s)];
    copied_for_[at(s)] = store.item >= 0 ? where_ : &old_.op(store.assign);
    const MemorySpace to = store.item >= 0
                               ? items_.items[at(store.item)].space
                               : result_.graph.find_state(old_.op(store.assign).attrs.str("name"))->space;
    return copy_start(source, to, *copied_for_[at(s)]);
  }
  ValueId end_store(int32_t s, ValueId source, ValueId copy, Moment) {
    const ValueId done = copy_done(copy, source, *copied_for_[at(s)]);
    const OffloadStore& store = items_.stores[at(s)];
    if (store.item >= 0) return done;
    Op assign = old_.op(store.assign);
    assign.inputs[0] = done;
    append(std::move(assign), {});
    return done;
  }

  // ---- ops

  void show(ValueId operand) { compute({&operand, 1}); }
  void read() { compute({}); }
  void assign(ValueId operand) { compute({&operand, 1}); }
  void compute(std::span<const ValueId> operands) {
    Op op = *where_;
    op.inputs.assign(operands.begin(), operands.end());
    if (items_.on_host[place_]) op.queue = ir::Queue::kHost;
    const std::vector<ValueId> old_outputs = op.outputs;
    const OpId id = append(std::move(op), types_of(old_outputs));
    for (size_t i = 0; i < old_outputs.size(); ++i)
      result_.replaced[at(old_outputs[i])] = result_.graph.op(id).outputs[i];
  }

 private:
  OpId append(Op op, const std::vector<ir::TensorType>& types) {
    return result_.graph.append(std::move(op), types);
  }
  ValueId append_one(Op op, const ir::TensorType& type) {
    return result_.graph.op(append(std::move(op), {type})).outputs[0];
  }
  [[nodiscard]] std::vector<ir::TensorType> types_of(const std::vector<ValueId>& values) const {
    std::vector<ir::TensorType> types;
    for (const ValueId v : values) types.push_back(old_.type(v));
    return types;
  }
  [[nodiscard]] const Op& user_of(int32_t load) const {
    return old_.op(old_.order()[at(items_.loads[at(load)].first)]);
  }

  ValueId copy_start(ValueId source, MemorySpace to, const Op& where) {
    Op op{.def = ops::find_op("copy_start"), .inputs = {source}, .layer = where.layer, .block = where.block};
    op.attrs.set("to", std::string(ir::name(to)));
    op.queue = to == MemorySpace::kDevice ? ir::Queue::kCopyIn : ir::Queue::kCopyOut;
    return append_one(std::move(op), result_.graph.type(source));
  }
  ValueId copy_done(ValueId copy, ValueId source, const Op& where) {
    Op op{.def = ops::find_op("copy_done"),
          .inputs = {copy, source},
          .layer = where.layer,
          .block = where.block};
    return append_one(std::move(op), result_.graph.type(source));
  }
  /// What stands for an old value among `known`, a view of one of them made where it is first asked for.
  ValueId view_in(std::map<ValueId, ValueId>& known, ValueId v) {
    if (const auto it = known.find(v); it != known.end()) return it->second;
    Op view = old_.op(old_.value(v).producer);
    PLIMSOLL_CHECK(view.def->is_view, "an offloaded value that is neither loaded nor a view");
    view.inputs[0] = view_in(known, view.inputs[0]);
    const std::vector<ValueId> old_outputs = view.outputs;
    const OpId id = append(std::move(view), types_of(old_outputs));
    for (size_t i = 0; i < old_outputs.size(); ++i) known[old_outputs[i]] = result_.graph.op(id).outputs[i];
    return known.at(v);
  }

  const ir::Graph& old_;
  const OffloadItems& items_;
  size_t place_ = 0;
  const Op* where_ = nullptr;
  std::vector<std::map<ValueId, ValueId>> offloaded_;  // by item: new by old value
  std::vector<std::map<ValueId, ValueId>> loaded_;     // by load: new by old value
  std::vector<const Op*> copied_for_;                  // by store: the op whose layer and block its copy has
  OffloadedGraph result_;
};

}  // namespace

OffloadedGraph emit_offloaded(const ir::Graph& graph, const OffloadOptions& options,
                              const OffloadItems& items) {
  return Emitter(graph, options, items).run();
}

}  // namespace plimsoll::passes
