// Twice: first with every load at its first use and every store ended at once, which says how many bytes of
// the device are alive at each op; then with loads as early, and ends of stores as late, as there is room.
#include "passes/offload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "passes/live_bytes.h"
#include "passes/memory_plan.h"
#include "passes/offload_emit.h"
#include "passes/offload_items.h"
#include "passes/offload_scratch.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::StateClass;

/// A copy is under way beside at most so many ops: what is earlier only holds memory.
constexpr int32_t kMostAhead = 512;

using WorkspaceBytes = std::function<int64_t(const ir::OpTypes&)>;

/// By op of the device; empty: none.
std::vector<int64_t> scratch_of(const ir::Graph& graph, const WorkspaceBytes& workspace) {
  std::vector<int64_t> bytes;
  if (!workspace) return bytes;
  bytes.resize(graph.num_ops(), 0);
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    const bool is_kernel = !op.def->is_view && !op.def->is_copy && op.def->state == ir::StateAccess::kNone;
    if (!is_kernel || op.queue == ir::Queue::kHost) continue;
    bytes[static_cast<size_t>(id.index)] = workspace(ir::op_types(graph, op));
  }
  return bytes;
}

/// Bytes of a space that are free at each op of the old order.
class Room {
 public:
  /// As many as `slack_part` lets copies add to the peak, or `least` where that is more.
  Room(const OffloadedGraph& plain, size_t num_ops, const LiveBytesOptions& options, int64_t slack_part,
       int64_t least)
      : free_(num_ops, 0) {
    const LiveBytes live = live_bytes(plain.graph, plain.graph.order(), options);
    std::vector<int64_t> at(num_ops, 0);
    for (size_t i = 0; i < live.at.size(); ++i) {
      int64_t& most = at[static_cast<size_t>(plain.origin[i])];
      most = std::max(most, live.at[i]);
    }
    const int64_t slack = slack_part > 0 ? live.peak_bytes / slack_part : 0;
    const int64_t limit = live.peak_bytes + std::max(slack, least);
    for (size_t i = 0; i < num_ops; ++i) free_[i] = limit - at[i];
  }
  bool take(int32_t place, int64_t bytes) {
    if (free_[static_cast<size_t>(place)] < bytes) return false;
    free_[static_cast<size_t>(place)] -= bytes;
    return true;
  }

 private:
  std::vector<int64_t> free_;
};

/// To the device in the order of first uses, which is the queue's.
void start_early(OffloadItems& items, Room& room, MemorySpace to) {
  int32_t before = 0;
  for (OffloadLoad& load : items.loads) {
    if (load.to != to) continue;
    const int32_t earliest =
        std::max({before, items.items[static_cast<size_t>(load.item)].earliest, load.first - kMostAhead});
    const int64_t bytes = round_up(load.bytes, kStorageAlignment);
    while (load.start > earliest && room.take(load.start - 1, bytes)) --load.start;
    if (to == MemorySpace::kDevice) before = load.start;
  }
}

void end_late(OffloadItems& items, Room& room, MemorySpace from, int32_t num_ops) {
  for (OffloadStore& store : items.stores) {
    if (store.from != from) continue;
    const int32_t latest = std::min(store.at + kMostAhead, num_ops);
    const int64_t bytes = round_up(store.bytes, kStorageAlignment);
    while (store.done < latest && room.take(store.done, bytes)) ++store.done;
  }
}

/// What is on its way to the host's kernels and from them may take so much: with room for copies to be early
/// and late all of it, else two of the largest.
int64_t under_way(const OffloadItems& items, bool all) {
  int64_t largest = 0, sum = 0;
  const auto add = [&](int64_t bytes) {
    bytes = round_up(bytes, kStorageAlignment);
    largest = std::max(largest, bytes), sum += bytes;
  };
  for (const OffloadLoad& load : items.loads)
    if (load.to == MemorySpace::kHostPinned) add(load.bytes);
  for (const OffloadStore& store : items.stores)
    if (store.from == MemorySpace::kHostPinned) add(store.bytes);
  return all ? sum : 2 * largest;
}

/// Each gradient's squares are summed where it is made, so that it can go to the host then.
void sum_squares_early(ir::Graph& graph) {
  const auto is_sum = [&](ir::OpId id) {
    const ir::Op& op = graph.op(id);
    return op.def->reads_gradients && op.inputs.size() == 1;
  };
  std::vector<std::vector<ir::OpId>> behind(graph.num_ops());
  for (const ir::OpId id : graph.order())
    if (is_sum(id)) {
      const ir::OpId maker = graph.value(graph.op(id).inputs[0]).producer;
      behind[static_cast<size_t>(maker.index)].push_back(id);
    }
  std::vector<ir::OpId> order;
  for (const ir::OpId id : graph.order()) {
    if (is_sum(id)) continue;
    order.push_back(id);
    const auto& sums = behind[static_cast<size_t>(id.index)];
    order.insert(order.end(), sums.begin(), sums.end());
  }
  graph.set_order(std::move(order));
}

}  // namespace

MemorySpace offloaded_space(const OffloadOptions& options, const ir::StateDecl& decl) {
  if (decl.type.bytes().count < options.least_bytes) return MemorySpace::kDevice;
  const auto of = [&](OffloadClass c) { return options.space(c, block_of_state(decl.name)); };
  switch (decl.state_class) {
    case StateClass::kParameter:
      return of(OffloadClass::kParameters);
    case StateClass::kMasterWeight:
      return of(OffloadClass::kMasters);
    case StateClass::kGradient:
      return of(OffloadClass::kGradients);
    case StateClass::kOptimizerState:
      return of(OffloadClass::kOptimizer);
    default:
      return MemorySpace::kDevice;
  }
}

Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context) {
  return offload(graph, options, context, {});
}

Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context,
               const WorkspaceBytes& workspace_bytes) {
  if (!options.any()) return Ok{};
  if (options.updates_on_host) sum_squares_early(graph);
  OffloadItems items = find_offload_items(graph, options, context.last_forward_op);
  OffloadedGraph result = emit_offloaded(graph, options, items);
  const size_t num_ops = graph.order().size();
  if (options.slack_part >= 0) {
    const std::vector<int64_t> scratch = scratch_of(result.graph, workspace_bytes);
    const auto move_apart = [&](const LiveBytesOptions& live, int64_t least) {
      Room room(result, num_ops, live, options.slack_part, least);
      start_early(items, room, live.space);
      end_late(items, room, live.space, static_cast<int32_t>(num_ops));
    };
    move_apart({.workspace_bytes = scratch}, 0);
    if (const int64_t most = under_way(items, options.slack_part > 0); most > 0)
      move_apart({.space = MemorySpace::kHostPinned}, most);
    result = emit_offloaded(graph, options, items);
  }
  for (ir::ValueId& v : context.keep) v = result.replaced[static_cast<size_t>(v.index)];
  graph = std::move(result.graph);
  return Ok{};
}

BytesMoved bytes_moved(const ir::Graph& graph) {
  BytesMoved moved;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (!op.def->is_copy) continue;
    (op.queue == ir::Queue::kCopyIn ? moved.in : moved.out) += graph.type(op.outputs[0]).bytes().count;
  }
  return moved;
}

}  // namespace plimsoll::passes
