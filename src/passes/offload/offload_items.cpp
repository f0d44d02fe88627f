#include "passes/offload/offload_items.h"

#include <algorithm>
#include <iterator>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::Op;
using ir::ValueId;

class Finder {
 public:
  Finder(const ir::Graph& graph, const OffloadUses& uses, const OffloadOptions& options)
      : graph_(graph), known_(uses), options_(options) {
    found_.item_of.assign(graph.num_values(), -1);
  }

  OffloadItems run() {
    found_.on_host.assign(graph_.order().size(), false);
    for (int32_t p = 0; p < size() && options_.updates_on_host; ++p)
      found_.on_host[static_cast<size_t>(p)] = is_for_host(op(p));
    for (int32_t p = 0; p < size(); ++p)
      for (const ValueId v : op(p).outputs) {
        if (op(p).def->is_view) continue;
        if (op(p).def->state == ir::StateAccess::kRead)
          add_state(v, p);
        else
          add_value(v);
      }
    for (int32_t p = 0; p < size(); ++p) add_assigned(p);
    follow_gradients();
    for (size_t v = 0; v < known_.roots.size(); ++v)
      if (const ValueId root = known_.roots[v]; root.valid()) found_.item_of[v] = found_.item_of[at(root)];
    std::stable_sort(found_.loads.begin(), found_.loads.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::move(found_);
  }

 private:
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(graph_.order().size()); }
  [[nodiscard]] const Op& op(int32_t p) const { return graph_.op(graph_.order()[static_cast<size_t>(p)]); }

  [[nodiscard]] int64_t bytes(ValueId v) const { return graph_.type(v).bytes().count; }

  // ---- the host's updates

  /// Whether a state of the update lies in the host's memory, and nothing that it reads or makes is in the
  /// way: on a disk, or of use to others than its states.
  [[nodiscard]] bool is_for_host(const Op& o) const {
    if (o.block != ir::kUpdateBlock || o.def->is_view || o.def->is_copy ||
        o.def->state != ir::StateAccess::kNone)
      return false;
    bool has_state = false;
    for (const ValueId v : o.inputs) {
      if (!v.valid()) continue;
      const ValueId root = known_.roots[at(v)];
      const Op& maker = op(known_.made[at(root)]);
      if (maker.def->state != ir::StateAccess::kRead) {
        if (known_.is_gradient[at(root)] && !is_within_reach(space_of_gradient(root))) return false;
        continue;
      }
      const int32_t state = known_.state[at(known_.made[at(root)])];
      const ir::StateDecl& decl = graph_.states()[static_cast<size_t>(state)];
      const MemorySpace space = space_of_state(state);
      if (!is_within_reach(space)) return false;
      has_state = has_state ||
                  (decl.state_class == ir::StateClass::kOptimizerState && space == MemorySpace::kHostPinned);
    }
    return has_state && std::ranges::all_of(o.outputs, [&](ValueId v) {
             return std::ranges::all_of(known_.uses[at(v)], [&](const ItemUse& use) {
               return op(use.at).def->state == ir::StateAccess::kAssign;
             });
           });
  }
  /// From where one copy, or none, brings it to the host's kernels.
  [[nodiscard]] static bool is_within_reach(MemorySpace space) {
    return space == MemorySpace::kDevice || space == MemorySpace::kHostPinned;
  }
  [[nodiscard]] bool on_host(int32_t place) const { return found_.on_host[static_cast<size_t>(place)]; }
  /// Those of the host, or all others.
  [[nodiscard]] std::vector<ItemUse> uses_by(ValueId v, bool host) const {
    std::vector<ItemUse> uses;
    for (const ItemUse& use : known_.uses[at(v)])
      if (on_host(use.at) == host) uses.push_back(use);
    return uses;
  }
  [[nodiscard]] MemorySpace space_of_state(int32_t state) const {
    const auto i = static_cast<size_t>(state);
    return offloaded_space(options_, graph_.states()[i], known_.state_blocks[i]);
  }
  [[nodiscard]] MemorySpace space_of_gradient(ValueId v) const {
    return options_.space(OffloadClass::kGradients, op(known_.made[at(v)]).block);
  }

  // ---- items

  void add_state(ValueId v, int32_t position) {
    const int32_t state = known_.state[at(position)];
    OffloadItem item{.value = v, .space = space_of_state(state), .is_state = true};
    item.stays = item.space == MemorySpace::kDevice;
    const std::vector<ItemUse> by_host = uses_by(v, true);
    if (item.stays ? by_host.empty() : known_.uses[at(v)].empty()) return;
    if (known_.is_read_again[static_cast<size_t>(position)]) item.earliest = position;
    add_item(item, item.stays ? by_host : uses_by(v, false));
  }

  /// A value that the program makes: out behind its last use before the gap, back for those behind it.
  void add_value(ValueId v) {
    const int32_t made = known_.made[at(v)];
    if (graph_.value(v).space != MemorySpace::kDevice || on_host(made)) return;
    const bool is_gradient = known_.is_gradient[at(v)];
    const bool remains = bytes(v) < options_.least_bytes || known_.in_state[at(v)];
    MemorySpace space =
        is_gradient ? space_of_gradient(v) : options_.space(OffloadClass::kActivations, op(made).block);
    const std::vector<ItemUse> by_host = uses_by(v, true);
    if (!by_host.empty() && remains)
      return add_item({.value = v, .stays = true, .earliest = made + 1}, by_host);
    // For the sake of the host's kernels alone.
    const bool is_hosts = !by_host.empty() && (space == MemorySpace::kDevice || !is_gradient);
    if (is_hosts) space = MemorySpace::kHostPinned;
    if (space == MemorySpace::kDevice || remains) return;
    int32_t out = made;
    const std::vector<ItemUse>& uses = known_.uses[at(v)];
    auto use = uses.begin();
    const auto goes_on = [&](const ItemUse& u) {
      return !on_host(u.at) && (is_hosts || known_.distance(out, u.at) <= kClose);
    };
    if (is_gradient || is_hosts) {
      for (; use != uses.end() && goes_on(*use); ++use) out = use->at;
    } else {
      if (made >= known_.boundary) return;
      for (; use != uses.end() && use->at <= known_.boundary; ++use) out = use->at;
      if (use != uses.end() && known_.distance(out, use->at) <= kClose) return;
    }
    if (use == uses.end()) return;
    OffloadItem item{.value = v, .space = space, .earliest = out + 1};
    item.store = static_cast<int32_t>(found_.stores.size());
    found_.stores.push_back(
        {.item = static_cast<int32_t>(found_.items.size()), .bytes = bytes(v), .at = out, .done = out + 1});
    std::vector<ItemUse> loaded;
    std::copy_if(use, uses.end(), std::back_inserter(loaded),
                 [&](const ItemUse& u) { return !on_host(u.at); });
    add_item(item, loaded);
  }

  /// What updates of the host read of the device's states goes out while gradients do: before that others
  /// need the queue, of which forward has least to spare. With its own gradient, or, where that is late, with
  /// one that is as early: at the end there is no time left.
  void follow_gradients() {
    std::vector<std::pair<int32_t, size_t>> followers;  // by where their gradient goes
    for (int32_t p = 0; p < size(); ++p) {
      if (!on_host(p)) continue;
      int32_t out = -1;
      std::vector<size_t> states;
      for (const ValueId v : op(p).inputs) {
        const int32_t i = v.valid() ? found_.item_of[at(known_.roots[at(v)])] : -1;
        if (i < 0) continue;
        const OffloadItem& item = found_.items[static_cast<size_t>(i)];
        if (item.store >= 0) out = std::max(out, item.earliest);
        if (item.stays && item.is_state) states.push_back(static_cast<size_t>(i));
      }
      for (const size_t i : states)
        if (out >= 0) followers.emplace_back(out, i);
    }
    std::ranges::sort(followers);
    for (size_t i = 0; i < followers.size(); ++i) {
      int32_t& earliest = found_.items[followers[i].second].earliest;
      earliest = std::max(earliest, std::min(followers[i].first, followers[followers.size() - 1 - i].first));
    }
  }

  void add_item(const OffloadItem& item, const std::vector<ItemUse>& uses) {
    const auto index = static_cast<int32_t>(found_.items.size());
    const bool is_once = item.stays && bytes(item.value) < options_.least_bytes;  // for all of the host's
    found_.item_of[at(item.value)] = index;
    found_.items.push_back(item);
    for (size_t i = 0; i < uses.size(); ++i) {
      if (i > 0 && (is_once || joins(uses[i - 1], uses[i], found_.loads.back().part))) {
        found_.loads.back().last = uses[i].at;
        continue;
      }
      const ValueId part = is_once ? ValueId{} : uses[i].part;
      found_.loads.push_back({.item = index,
                              .part = part,
                              .bytes = bytes(part.valid() ? part : item.value),
                              .to = item.stays ? MemorySpace::kHostPinned : MemorySpace::kDevice,
                              .first = uses[i].at,
                              .last = uses[i].at,
                              .start = uses[i].at});
    }
  }
  /// Whether a use goes with what was loaded for the one before it.
  [[nodiscard]] bool joins(const ItemUse& before, const ItemUse& use, ValueId loaded) const {
    return known_.are_close(graph_, before.at, use.at) && (!loaded.valid() || loaded == use.part);
  }

  void add_assigned(int32_t p) {
    const Op& o = op(p);
    if (o.def->state != ir::StateAccess::kAssign) return;
    const bool is_hosts = on_host(known_.made[at(known_.roots[at(o.inputs[0])])]);
    const MemorySpace from = is_hosts ? MemorySpace::kHostPinned : MemorySpace::kDevice;
    if (space_of_state(known_.state[at(p)]) == from) return;
    found_.stores.push_back({.assign = graph_.order()[static_cast<size_t>(p)],
                             .bytes = bytes(o.inputs[0]),
                             .from = from,
                             .at = p,
                             .done = p + 1});
    if (const int32_t read = known_.read_again[static_cast<size_t>(p)]; read >= 0)
      found_.stores.back().latest = read;
  }

  const ir::Graph& graph_;
  const OffloadUses& known_;
  const OffloadOptions& options_;
  OffloadItems found_;
};

}  // namespace

OffloadItems find_offload_items(const ir::Graph& graph, const OffloadUses& uses,
                                const OffloadOptions& options) {
  return Finder(graph, uses, options).run();
}

}  // namespace plimsoll::passes
