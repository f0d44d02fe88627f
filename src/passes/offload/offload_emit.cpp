// One walk along the old order. In front of each op: stores that end there, loads that begin there, loads
// that its operands wait for.
#include "passes/offload/offload_emit.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "ir/op_def.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::Op;
using ir::OpId;
using ir::ValueId;

class Emitter {
 public:
  Emitter(const ir::Graph& graph, const OffloadOptions& options, const OffloadItems& items)
      : old_(graph),
        items_(items),
        loads_of_(items.items.size()),
        offloaded_(items.items.size()),
        starts_(items.loads.size()),
        loaded_(items.loads.size()),
        stores_(items.stores.size()) {
    result_.graph.name = graph.name;
    result_.replaced.resize(graph.num_values());
    for (ir::StateDecl decl : graph.states()) {
      decl.space = decl.space == MemorySpace::kDevice ? offloaded_space(options, decl) : decl.space;
      result_.graph.declare_state(decl);
    }
    const size_t n = graph.order().size();
    starting_.resize(n + 1), arriving_.resize(n + 1), ending_.resize(n + 1), leaving_.resize(n + 1);
    for (size_t i = 0; i < items.loads.size(); ++i) {
      loads_of_[at(items.loads[i].item)].push_back(i);
      starting_[at(items.loads[i].start)].push_back(i);
      arriving_[at(items.loads[i].first)].push_back(i);
    }
    for (size_t i = 0; i < items.stores.size(); ++i) {
      ending_[std::min(at(items.stores[i].done), n)].push_back(i);
      leaving_[at(items.stores[i].at)].push_back(i);
    }
  }

  OffloadedGraph run() {
    const size_t n = old_.order().size();
    for (place_ = 0; place_ < n; ++place_) {
      const OpId id = old_.order()[place_];
      where_ = &old_.op(id);
      for (const size_t s : ending_[place_]) end_store(s);
      for (const size_t l : starting_[place_]) start_load(l);
      for (const size_t l : arriving_[place_]) arrive(l);
      if (emits(*where_)) emit(*where_);
      for (const size_t s : leaving_[place_]) start_store(s);
    }
    place_ = n == 0 ? 0 : n - 1;
    for (size_t s = 0; s < stores_.size(); ++s) end_store(s);
    return std::move(result_);
  }

 private:
  struct Copy {
    ValueId copy, source, done;
    const Op* where = nullptr;
  };

  OpId append(Op op, const std::vector<ir::TensorType>& types) {
    return result_.graph.append(std::move(op), types);
  }
  ValueId append_one(Op op, const ir::TensorType& type) {
    return result_.graph.op(append(std::move(op), {type})).outputs[0];
  }

  ValueId copy_start(ValueId source, MemorySpace to, const Op& where) {
    Op op{.def = ops::find_op("copy_start"), .inputs = {source}, .layer = where.layer, .block = where.block};
    op.attrs.set("to", std::string(ir::name(to)));
    op.queue = to == MemorySpace::kDevice ? ir::Queue::kCopyIn : ir::Queue::kCopyOut;
    return append_one(std::move(op), result_.graph.type(source));
  }
  ValueId copy_done(const Copy& copy) {
    Op op{.def = ops::find_op("copy_done"),
          .inputs = {copy.copy, copy.source},
          .layer = copy.where->layer,
          .block = copy.where->block};
    return append_one(std::move(op), result_.graph.type(copy.source));
  }

  // ---- loads

  /// Where the item lies elsewhere.
  ValueId source_of(int32_t item) {
    const OffloadItem& i = items_.items[at(item)];
    if (i.stays && !i.is_state) return result_.replaced[at(i.value)];
    if (!i.is_state) {
      end_store(at(i.store));
      return stores_[at(i.store)].done;
    }
    ValueId& read = offloaded_[at(item)][i.value];
    if (!read.valid()) {
      const Op& op = old_.op(old_.value(i.value).producer);
      read = append_one(op, old_.type(i.value));
    }
    return read;
  }
  void start_load(size_t l) {
    const OffloadLoad& load = items_.loads[l];
    const Op& user = old_.op(old_.order()[at(load.first)]);
    ValueId source = source_of(load.item);
    if (load.part.valid()) {
      std::map<ValueId, ValueId>& there = offloaded_[at(load.item)];
      there[items_.items[at(load.item)].value] = source;
      source = view_in(there, load.part);
    }
    starts_[l] = {copy_start(source, load.to, user), source, {}, &user};
  }
  void arrive(size_t l) {
    const OffloadLoad& load = items_.loads[l];
    starts_[l].done = copy_done(starts_[l]);
    loaded_[l][load.part.valid() ? load.part : items_.items[at(load.item)].value] = starts_[l].done;
  }
  /// The load that serves the op at hand.
  [[nodiscard]] size_t load_of(int32_t item) const {
    for (const size_t l : loads_of_[at(item)])
      if (at(items_.loads[l].first) <= place_ && place_ <= at(items_.loads[l].last)) return l;
    PLIMSOLL_FAIL("an operand that is not loaded: " + where_->layer);
  }
  /// What stands for an old value among `known`, a view of one of them made where it is first asked for.
  ValueId view_in(std::map<ValueId, ValueId>& known, ValueId v) {
    if (const auto it = known.find(v); it != known.end()) return it->second;
    Op view = old_.op(old_.value(v).producer);
    PLIMSOLL_CHECK(view.def->is_view, "an offloaded value that is neither loaded nor a view");
    view.inputs[0] = view_in(known, view.inputs[0]);
    const std::vector<ValueId> old_outputs = view.outputs;
    std::vector<ir::TensorType> types;
    for (const ValueId out : old_outputs) types.push_back(old_.type(out));
    const OpId id = append(std::move(view), types);
    for (size_t i = 0; i < old_outputs.size(); ++i) known[old_outputs[i]] = result_.graph.op(id).outputs[i];
    return known.at(v);
  }

  // ---- stores

  void start_store(size_t s) {
    const OffloadStore& store = items_.stores[s];
    if (store.item >= 0) {
      const OffloadItem& item = items_.items[at(store.item)];
      const ValueId source = result_.replaced[at(item.value)];
      stores_[s] = {copy_start(source, item.space, *where_), source, {}, where_};
      return;
    }
    const Op& assign = old_.op(store.assign);
    const ValueId source = operand(assign.inputs[0]);
    const ir::StateDecl* decl = result_.graph.find_state(assign.attrs.str("name"));
    stores_[s] = {copy_start(source, decl->space, assign), source, {}, &assign};
  }
  void end_store(size_t s) {
    Copy& copy = stores_[s];
    if (copy.done.valid() || !copy.copy.valid()) return;
    copy.done = copy_done(copy);
    const OffloadStore& store = items_.stores[s];
    if (store.item >= 0) return;
    Op assign = old_.op(store.assign);
    assign.inputs[0] = copy.done;
    append(std::move(assign), {});
  }

  // ---- ops

  [[nodiscard]] bool is_back(int32_t item) const {
    const OffloadItem& i = items_.items[at(item)];
    if (i.stays) return false;
    return i.is_state || place_ > at(items_.stores[at(i.store)].at);
  }
  /// Views are made for each load, offloaded states are assigned by their stores.
  [[nodiscard]] bool emits(const Op& op) const {
    if (op.def->is_view) {
      const int32_t item = items_.item_of[at(op.inputs[0])];
      return item < 0 || !is_back(item);
    }
    if (op.def->state == ir::StateAccess::kRead) {
      const int32_t item = items_.item_of[at(op.outputs[0])];
      return item < 0 || items_.items[at(item)].stays;
    }
    if (op.def->state == ir::StateAccess::kAssign)
      return std::ranges::none_of(leaving_[place_], [&](size_t s) { return items_.stores[s].item < 0; });
    return true;
  }
  /// Of a kernel of the host: where it lies for good, or what was brought there.
  ValueId host_operand(ValueId v) {
    const int32_t item = items_.item_of[at(v)];
    PLIMSOLL_CHECK(item >= 0, "an operand that the host does not reach: " + where_->layer);
    if (items_.items[at(item)].stays) return view_in(loaded_[load_of(item)], v);
    const ValueId source = source_of(item);
    std::map<ValueId, ValueId>& there = offloaded_[at(item)];
    there[items_.items[at(item)].value] = source;
    return view_in(there, v);
  }
  ValueId operand(ValueId v) {
    if (!v.valid()) return v;
    if (items_.on_host[place_]) return host_operand(v);
    const int32_t item = items_.item_of[at(v)];
    return item < 0 || !is_back(item) ? result_.replaced[at(v)] : view_in(loaded_[load_of(item)], v);
  }
  void emit(Op op) {
    for (ValueId& in : op.inputs) in = operand(in);
    if (items_.on_host[place_]) op.queue = ir::Queue::kHost;
    const std::vector<ValueId> old_outputs = op.outputs;
    std::vector<ir::TensorType> types;
    for (const ValueId out : old_outputs) types.push_back(old_.type(out));
    const OpId id = append(std::move(op), types);
    for (size_t i = 0; i < old_outputs.size(); ++i)
      result_.replaced[at(old_outputs[i])] = result_.graph.op(id).outputs[i];
  }

  const ir::Graph& old_;
  const OffloadItems& items_;
  size_t place_ = 0;
  const Op* where_ = nullptr;
  std::vector<std::vector<size_t>> loads_of_;                                // by item
  std::vector<std::vector<size_t>> starting_, arriving_, ending_, leaving_;  // by place
  std::vector<std::map<ValueId, ValueId>> offloaded_;                        // by item: new by old value
  std::vector<Copy> starts_;                                                 // by load
  std::vector<std::map<ValueId, ValueId>> loaded_;                           // by load: new by old value
  std::vector<Copy> stores_;
  OffloadedGraph result_;
};

}  // namespace

OffloadedGraph emit_offloaded(const ir::Graph& graph, const OffloadOptions& options,
                              const OffloadItems& items) {
  return Emitter(graph, options, items).run();
}

}  // namespace plimsoll::passes
