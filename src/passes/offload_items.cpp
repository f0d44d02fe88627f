#include "passes/offload_items.h"

#include <algorithm>
#include <map>
#include <string>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::Op;
using ir::ValueId;

/// Uses so close, or of one block and so close, are served by one load.
constexpr int32_t kClose = 8, kCloseInBlock = 48;

size_t index_of(ValueId v) { return static_cast<size_t>(v.index); }

/// An op that computes with an item, at its place in the order.
struct ItemUse {
  int32_t at = 0;
  ValueId part = {};  ///< the window of the item that it reads; invalid: all of it, or several
};

class Finder {
 public:
  Finder(const ir::Graph& graph, const OffloadOptions& options, ir::OpId last_forward_op)
      : graph_(graph),
        options_(options),
        made_(graph.num_values(), -1),
        uses_(graph.num_values()),
        in_state_(graph.num_values(), false),
        is_gradient_(graph.num_values(), false),
        parts_(graph.num_values()) {
    found_.item_of.assign(graph.num_values(), -1);
    found_.roots.resize(graph.num_values());
    for (int32_t p = 0; p < size(); ++p) {
      if (graph.order()[static_cast<size_t>(p)] == last_forward_op) boundary_ = p;
      const bool counts = !op(p).def->is_view || op(p).block != ir::kUpdateBlock;
      clock_.push_back((p == 0 ? 0 : clock_.back()) + (counts ? 1 : 0));
      look_at(p);
    }
  }

  OffloadItems run() {
    for (int32_t p = 0; p < size(); ++p)
      for (const ValueId v : op(p).outputs) {
        if (op(p).def->is_view) continue;
        if (op(p).def->state == ir::StateAccess::kRead)
          add_state(v, p);
        else
          add_value(v);
      }
    for (int32_t p = 0; p < size(); ++p) add_assigned(p);
    for (size_t v = 0; v < found_.roots.size(); ++v)
      if (const ValueId root = found_.roots[v]; root.valid())
        found_.item_of[v] = found_.item_of[index_of(root)];
    std::stable_sort(found_.loads.begin(), found_.loads.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::move(found_);
  }

 private:
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(graph_.order().size()); }
  [[nodiscard]] const Op& op(int32_t p) const { return graph_.op(graph_.order()[static_cast<size_t>(p)]); }

  void look_at(int32_t p) {
    const Op& o = op(p);
    for (const ValueId v : o.outputs) {
      found_.roots[index_of(v)] = o.def->is_view ? found_.roots[index_of(o.inputs[0])] : v;
      made_[index_of(v)] = p;
      if (o.def->is_view) parts_[index_of(v)] = part_of(o, v);
    }
    if (o.def->state == ir::StateAccess::kAssign) {
      assigned_[o.attrs.str("name")] = p;
      in_state_[index_of(found_.roots[index_of(o.inputs[0])])] = true;
    }
    if (o.def->reads_gradients)
      for (const ValueId v : o.inputs)
        if (v.valid()) is_gradient_[index_of(found_.roots[index_of(v)])] = true;
    if (o.def->is_view) return;
    for (const ValueId v : o.inputs) {
      if (!v.valid()) continue;
      std::vector<ItemUse>& uses = uses_[index_of(found_.roots[index_of(v)])];
      if (uses.empty() || uses.back().at != p)
        uses.push_back({p, parts_[index_of(v)]});
      else if (uses.back().part != parts_[index_of(v)])
        uses.back().part = {};
    }
  }

  /// Of a view: the window of its root that it shows for an update (update_windows.h), of which each is read
  /// once; invalid: it shows anything else.
  [[nodiscard]] ValueId part_of(const Op& view, ValueId shown) const {
    const ValueId of = view.inputs[0];
    if (parts_[index_of(of)].valid()) return parts_[index_of(of)];
    const bool cuts = view.outputs.size() > 1 && graph_.type(of).shape.rank() == 1;
    return cuts && view.block == ir::kUpdateBlock ? shown : ValueId{};
  }

  [[nodiscard]] int64_t bytes(ValueId v) const { return graph_.type(v).bytes().count; }

  void add_state(ValueId v, int32_t position) {
    const ir::StateDecl* decl = graph_.find_state(op(position).attrs.str("name"));
    const MemorySpace space = offloaded_space(options_, *decl);
    if (space == MemorySpace::kDevice || uses_[index_of(v)].empty()) return;
    OffloadItem item{.value = v, .space = space, .is_state = true};
    if (const auto it = assigned_.find(decl->name); it != assigned_.end() && it->second < position)
      item.earliest = it->second + 1;
    add_item(item, uses_[index_of(v)]);
  }

  /// A value that the program makes: out behind its last use before the gap, back for those behind it.
  void add_value(ValueId v) {
    const bool is_gradient = is_gradient_[index_of(v)];
    const MemorySpace space = options_.space(
        is_gradient ? OffloadClass::kGradients : OffloadClass::kActivations, op(made_[index_of(v)]).block);
    if (space == MemorySpace::kDevice || bytes(v) < options_.least_bytes || in_state_[index_of(v)] ||
        graph_.value(v).space != MemorySpace::kDevice)
      return;
    int32_t out = made_[index_of(v)];
    const std::vector<ItemUse>& uses = uses_[index_of(v)];
    auto use = uses.begin();
    if (is_gradient) {
      for (; use != uses.end() && distance(out, use->at) <= kClose; ++use) out = use->at;
    } else {
      if (out >= boundary_) return;
      for (; use != uses.end() && use->at <= boundary_; ++use) out = use->at;
      if (use != uses.end() && distance(out, use->at) <= kClose) return;
    }
    if (use == uses.end()) return;
    OffloadItem item{.value = v, .space = space, .earliest = out + 1};
    item.store = static_cast<int32_t>(found_.stores.size());
    found_.stores.push_back(
        {.item = static_cast<int32_t>(found_.items.size()), .bytes = bytes(v), .at = out, .done = out + 1});
    add_item(item, {use, uses.end()});
  }

  void add_item(const OffloadItem& item, const std::vector<ItemUse>& uses) {
    const auto index = static_cast<int32_t>(found_.items.size());
    found_.item_of[index_of(item.value)] = index;
    found_.items.push_back(item);
    for (size_t i = 0; i < uses.size(); ++i) {
      if (i > 0 && joins(uses[i - 1], uses[i], found_.loads.back().part)) {
        found_.loads.back().last = uses[i].at;
        continue;
      }
      const ValueId part = uses[i].part;
      const int64_t loaded = bytes(part.valid() ? part : item.value);
      found_.loads.push_back({index, part, loaded, uses[i].at, uses[i].at, uses[i].at});
    }
  }
  /// Whether a use goes with what was loaded for the one before it.
  [[nodiscard]] bool joins(const ItemUse& before, const ItemUse& use, ValueId loaded) const {
    const int32_t ops = distance(before.at, use.at);
    const bool is_close = ops <= kClose || (ops <= kCloseInBlock && op(use.at).block == op(before.at).block);
    return is_close && (!loaded.valid() || loaded == use.part);
  }
  /// In ops; views of an update's windows are none, so that its parameter is as near as to the whole update.
  [[nodiscard]] int32_t distance(int32_t from, int32_t to) const {
    return clock_[static_cast<size_t>(to)] - clock_[static_cast<size_t>(from)];
  }

  void add_assigned(int32_t p) {
    const Op& o = op(p);
    if (o.def->state != ir::StateAccess::kAssign) return;
    if (offloaded_space(options_, *graph_.find_state(o.attrs.str("name"))) == MemorySpace::kDevice) return;
    found_.stores.push_back({.assign = graph_.order()[static_cast<size_t>(p)],
                             .bytes = bytes(o.inputs[0]),
                             .at = p,
                             .done = p + 1});
  }

  const ir::Graph& graph_;
  const OffloadOptions& options_;
  int32_t boundary_ = -1;                   // of the op that gives the loss
  std::vector<int32_t> clock_;              // by place: see distance
  std::vector<int32_t> made_;               // by value: place in the order
  std::vector<std::vector<ItemUse>> uses_;  // by root: ops that compute with it
  std::map<std::string, int32_t> assigned_;
  std::vector<bool> in_state_, is_gradient_;  // by root
  std::vector<ValueId> parts_;                // by value: see part_of
  OffloadItems found_;
};

}  // namespace

OffloadItems find_offload_items(const ir::Graph& graph, const OffloadOptions& options,
                                ir::OpId last_forward_op) {
  return Finder(graph, options, last_forward_op).run();
}

}  // namespace plimsoll::passes
