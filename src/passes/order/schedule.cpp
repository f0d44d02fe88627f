// A demand-driven walk: the ops that neither sink nor rise keep the program's order and pull what they need.
#include "passes/order/schedule.h"

#include <algorithm>
#include <array>
#include <vector>

#include "passes/memory/live_bytes.h"
#include "passes/memory/storage_groups.h"
#include "passes/order/dependencies.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::OpId;

enum class Move : uint8_t { kStay, kSink, kRise };

/// What each op of the order should do, by its place: the bytes that it makes against the bytes that die with
/// it.
std::vector<Move> moves(const Graph& graph, const StorageGroups& s, bool updates_stay) {
  std::vector<Move> moves;
  for (size_t place = 0; place < graph.order().size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    const bool is_update = updates_stay && op.block == ir::kUpdateBlock && !op.inputs.empty();
    // Where copies begin and end is their pass's to say.
    if (op.def->is_copy || op.def->ends_copy || is_update) {
      moves.push_back(Move::kStay);
      continue;
    }
    int64_t made = 0;
    int64_t freed = 0;
    for (const ir::ValueId v : op.outputs)
      if (s.of(v).owner == v && !s.of(v).is_state) made += graph.type(v).bytes().count;
    std::vector<int32_t> seen;
    for (const ir::ValueId v : op.inputs) {
      if (!v.valid() || s.of(v).is_state || s.of(v).last_use != place) continue;
      if (std::find(seen.begin(), seen.end(), s.index(v)) != seen.end()) continue;
      seen.push_back(s.index(v));
      freed += graph.type(s.of(v).owner).bytes().count;
    }
    moves.push_back(op.def->has_effect || freed > made ? Move::kRise
                    : op.def->is_view || op.def->state == ir::StateAccess::kRead || made > freed
                        ? Move::kSink
                        : Move::kStay);
  }
  return moves;
}

/// Walks the places in order, leaving out what sinks until it is needed and running what rises once it can.
class DemandOrder {
 public:
  DemandOrder(const Dependencies& deps, std::vector<Move> moves)
      : deps_(deps), moves_(std::move(moves)), waiting_(moves_.size()), done_(moves_.size(), false) {
    for (size_t i = 0; i < moves_.size(); ++i) waiting_[i] = deps.before[i].size();
  }

  std::vector<size_t> run() {
    for (size_t i = 0; i < moves_.size(); ++i)
      if (moves_[i] != Move::kSink) emit_with_operands(i);
    for (size_t i = 0; i < moves_.size(); ++i) emit_with_operands(i);
    return std::move(order_);
  }

 private:
  /// Depth first over what must come before; an explicit stack, as chains grow with the model.
  void emit_with_operands(size_t place) {
    if (done_[place]) return;
    stack_.assign(1, {place, 0});
    while (!stack_.empty()) {
      auto& [op, next] = stack_.back();
      if (done_[op]) {
        stack_.pop_back();
      } else if (next < deps_.before[op].size()) {
        const size_t needed = deps_.before[op][next++];
        if (!done_[needed]) stack_.emplace_back(needed, 0);
      } else {
        const size_t ready = op;
        stack_.pop_back();
        emit(ready);
      }
    }
  }

  void emit(size_t place) {
    ready_.assign(1, place);
    for (size_t i = 0; i < ready_.size(); ++i) {
      const size_t op = ready_[i];
      if (done_[op]) continue;
      done_[op] = true;
      order_.push_back(op);
      for (const size_t after : deps_.after[op])
        if (--waiting_[after] == 0 && moves_[after] == Move::kRise) ready_.push_back(after);
    }
  }

  const Dependencies& deps_;
  std::vector<Move> moves_;
  std::vector<size_t> waiting_;
  std::vector<bool> done_;
  std::vector<size_t> order_;
  std::vector<std::pair<size_t, size_t>> stack_;  ///< op, next of its predecessors
  std::vector<size_t> ready_;
};

/// The moves of one kind left out.
std::vector<Move> without(std::vector<Move> moves, Move kind) {
  std::replace(moves.begin(), moves.end(), kind, Move::kStay);
  return moves;
}

std::vector<OpId> ordered(const Graph& graph, const Dependencies& deps, std::vector<Move> moves) {
  std::vector<OpId> order;
  for (const size_t place : DemandOrder(deps, std::move(moves)).run()) order.push_back(graph.order()[place]);
  return order;
}

std::vector<int64_t> workspaces(const Graph& graph, const ScheduleOptions& options) {
  std::vector<int64_t> bytes;
  if (!options.workspace_bytes) return bytes;
  bytes.assign(graph.num_ops(), 0);
  for (const OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->is_view || op.def->is_copy || op.def->state == ir::StateAccess::kRead ||
        op.def->state == ir::StateAccess::kAssign)
      continue;
    bytes[static_cast<size_t>(id.index)] = options.workspace_bytes(ir::op_types(graph, op));
  }
  return bytes;
}

}  // namespace

Result<ScheduleReport> schedule(Graph& graph, const ScheduleOptions& options) {
  const std::vector<int64_t> scratch = workspaces(graph, options);
  const LiveBytesOptions live{.keep = options.keep, .in_place = options.in_place, .workspace_bytes = scratch};
  ScheduleReport report;
  report.peak_bytes_before = live_bytes(graph, graph.order(), live).peak_bytes;
  report.peak_bytes_after = report.peak_bytes_before;
  constexpr int kRounds = 2;  // what an op frees depends on the order, so a better order may find more
  for (int round = 0; round < kRounds; ++round) {
    const Dependencies deps = dependencies(graph);
    const auto wanted =
        moves(graph, storage_groups(graph, graph.order(), options.keep), options.updates_stay);
    std::vector<OpId> best;
    const std::array candidates{wanted, without(wanted, Move::kSink), without(wanted, Move::kRise)};
    for (size_t c = 0; c < candidates.size(); ++c) {
      if (c > 0 && candidates[c] == candidates[0]) continue;
      std::vector<OpId> order = ordered(graph, deps, candidates[c]);
      const int64_t peak = live_bytes(graph, order, live).peak_bytes;
      if (peak >= report.peak_bytes_after) continue;
      report.peak_bytes_after = peak;
      best = std::move(order);
    }
    if (best.empty()) break;
    graph.set_order(std::move(best));
  }
  return report;
}

}  // namespace plimsoll::passes
