// Differences at the ends of the lifetimes, summed along the order.
#include "passes/memory/live_bytes.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "passes/memory/in_place.h"
#include "passes/memory/memory_plan.h"
#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

/// Storages as groups joined by in-place results: `first[i]` is the group whose storage group i continues.
std::vector<int32_t> joined(const ir::Graph& graph, std::span<const ir::OpId> order, const StorageGroups& s) {
  std::vector<int32_t> storage(s.groups.size());
  std::iota(storage.begin(), storage.end(), 0);
  for (const auto& [id, alias] : in_place_along(graph, order, s).aliases) {
    const ir::Op& op = graph.op(id);
    const auto from = static_cast<size_t>(s.index(op.inputs[static_cast<size_t>(alias.input)]));
    storage[static_cast<size_t>(s.index(op.outputs[static_cast<size_t>(alias.output)]))] = storage[from];
  }
  return storage;
}

/// By group: whether its value is written where the state lies: the state is not read once the value exists.
std::vector<bool> made_in_state(const ir::Graph& graph, std::span<const ir::OpId> order,
                                const StorageGroups& s, std::span<const size_t> made) {
  std::unordered_map<std::string_view, size_t> last_read;  // by state
  for (size_t i = 0; i < order.size(); ++i) {
    const ir::Op& op = graph.op(order[i]);
    if (op.def->state == ir::StateAccess::kRead)
      last_read[op.attrs.str("name")] = s.of(op.outputs[0]).last_use;
  }
  std::vector<bool> in_state(s.groups.size(), false);
  for (const ir::OpId id : order) {
    const ir::Op& op = graph.op(id);
    if (op.def->state != ir::StateAccess::kAssign || !s.whole[static_cast<size_t>(op.inputs[0].index)])
      continue;
    const auto group = static_cast<size_t>(s.index(op.inputs[0]));
    const auto it = last_read.find(op.attrs.str("name"));
    if (it == last_read.end() || it->second < made[group]) in_state[group] = true;
  }
  return in_state;
}

/// By place in the order, how the live sum changes there: a storage comes with its first group and goes
/// behind the last use of all its groups.
std::vector<int64_t> changes(const ir::Graph& graph, std::span<const ir::OpId> order, const StorageGroups& s,
                             const LiveBytesOptions& options) {
  std::vector<size_t> made(s.groups.size(), 0);
  for (size_t i = order.size(); i-- > 0;)
    for (const ir::ValueId v : graph.op(order[i]).outputs) made[static_cast<size_t>(s.index(v))] = i;
  std::vector<int32_t> storage(s.groups.size());
  std::iota(storage.begin(), storage.end(), 0);
  if (options.in_place) storage = joined(graph, order, s);
  const std::vector<bool> in_state = made_in_state(graph, order, s, made);
  std::vector<size_t> last(s.groups.size(), 0);
  for (size_t g = 0; g < s.groups.size(); ++g) {
    size_t& end = last[static_cast<size_t>(storage[g])];
    end = std::max(end, s.groups[g].last_use);
  }
  std::vector<int64_t> change(order.size() + 2, 0);
  for (size_t g = 0; g < s.groups.size(); ++g) {
    if (storage[g] != static_cast<int32_t>(g) || s.groups[g].is_state || in_state[g]) continue;
    if (graph.value(s.groups[g].owner).space != ir::MemorySpace::kDevice) continue;
    const int64_t bytes = round_up(graph.type(s.groups[g].owner).bytes().count, kStorageAlignment);
    change[made[g]] += bytes;
    change[std::min(last[g], order.size()) + 1] -= bytes;
  }
  return change;
}

}  // namespace

LiveBytes live_bytes(const ir::Graph& graph, std::span<const ir::OpId> order,
                     const LiveBytesOptions& options) {
  const StorageGroups s = storage_groups(graph, order, options.keep);
  const std::vector<int64_t> change = changes(graph, order, s, options);
  LiveBytes live;
  int64_t now = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    now += change[i];
    const auto op = static_cast<size_t>(order[i].index);
    live.at.push_back(now + (op < options.workspace_bytes.size() ? options.workspace_bytes[op] : 0));
    if (live.at[i] > live.peak_bytes) live.peak_bytes = live.at[i], live.peak_position = i;
  }
  return live;
}

}  // namespace plimsoll::passes
