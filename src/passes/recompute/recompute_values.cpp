#include "passes/recompute/recompute_values.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/at.h"
#include "base/check.h"
#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

constexpr int32_t kAnyBlock = std::numeric_limits<int32_t>::max();

/// "layers.3" of "layers.3.mlp" for block 3, "decoder.0#3" of "decoder.0#3.mlp"; the whole name where the
/// number is no part of it.
std::string block_name(const Op& op) {
  for (const char mark : {'#', '.'}) {
    const std::string number = mark + std::to_string(op.block);
    for (size_t at = op.layer.find(number); at != std::string::npos; at = op.layer.find(number, at + 1)) {
      const size_t end = at + number.size();
      if (end == op.layer.size() || op.layer[end] == '.') return op.layer.substr(0, end);
    }
  }
  return op.layer;
}
/// "mlp" of "layers.3.mlp"; empty for what is the block's own.
std::string part_name(const Op& op) {
  const size_t length = block_name(op).size();
  if (op.layer.size() <= length) return {};
  const size_t end = op.layer.find('.', length + 1);
  return op.layer.substr(length + 1, end == std::string::npos ? end : end - length - 1);
}

ValueId sum_of(const Op& op) {
  return op.def->norm.sum >= 0 ? op.outputs[static_cast<size_t>(op.def->norm.sum)] : ValueId{};
}

}  // namespace

RecomputeAnalysis::RecomputeAnalysis(const Graph& graph, OpId last_forward_op)
    : graph_(graph), last_forward_op_(last_forward_op), backward_(graph.num_values()) {
  const auto& order = graph.order();
  size_t place = 0;
  for (bool is_forward = true; is_forward; ++place) {
    PLIMSOLL_CHECK(place < order.size(), "recompute: the op that gives the loss is gone");
    const Op& op = graph.op(order[place]);
    is_forward = order[place] != last_forward_op;
    if (op.block < 0) continue;
    const std::string part = part_name(op);
    const auto block = static_cast<size_t>(op.block);
    if (blocks_.size() <= block) blocks_.resize(block + 1);
    blocks_[block].push_back({order[place], part});
    const auto add = [&](const std::string& own, const std::string& name) {
      const auto is_it = [&](const auto& l) { return l.first == op.block && l.part == own; };
      if (std::ranges::none_of(layers_, is_it)) layers_.push_back({op.block, op.block, own, name});
    };
    add("", block_name(op));
    if (!part.empty()) add(part, block_name(op) + "." + part);
  }
  std::ranges::stable_sort(layers_, {}, &RecomputeUnit::first);
  for (; place < order.size(); ++place) {
    const Op& op = graph.op(order[place]);
    if (op.block == ir::kUpdateBlock) continue;
    for (const ValueId v : op.inputs)
      if (v.valid()) backward_[at(root(v))].push_back(op.block);
  }
}

ValueId RecomputeAnalysis::root(ValueId v) const { return view_root(graph_, v); }

/// Whether backward reads a storage, in a block before that one.
bool RecomputeAnalysis::is_read(ValueId owner, int32_t before_block) const {
  return std::ranges::any_of(backward_[at(owner)], [&](int32_t b) { return b < before_block; });
}

std::vector<OpId> RecomputeAnalysis::ops_of(const RecomputeUnit& unit) const {
  std::vector<OpId> ops;
  for (int32_t block = unit.first; block <= unit.last; ++block)
    for (const ForwardOp& op : blocks_[static_cast<size_t>(block)])
      if (unit.part.empty() || unit.part == op.part) ops.push_back(op.id);
  return ops;
}

/// Marks what the unit makes, and what must stay: what enters it, and what is read from outside.
void RecomputeAnalysis::drop(const RecomputeUnit& unit, std::vector<bool>& inside,
                             std::vector<bool>& stays) const {
  const std::vector<OpId> ops = ops_of(unit);
  std::set<ValueId> made;
  for (const OpId id : ops) {
    const Op& op = graph_.op(id);
    const auto enters = [&](ValueId v) { return v.valid() && !made.contains(root(v)); };
    const ValueId sum = sum_of(op);
    const bool adds = sum.valid() && enters(op.inputs[0]) && enters(op.inputs[1]);
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (enters(op.inputs[i]) && !(adds && i < 2)) stays[at(root(op.inputs[i]))] = true;
    if (op.def->is_view) continue;
    for (const ValueId v : op.outputs) {
      made.insert(v);
      inside[at(v)] = true;
      const auto is_offloaded = [&](int32_t block) { return block < unit.first || block > unit.last; };
      if ((adds && v == sum) || std::ranges::any_of(backward_[at(v)], is_offloaded)) stays[at(v)] = true;
    }
  }
}

/// What backward in blocks before that one keeps of what the ops make: what it reads and what is not nearly
/// free to have again from what is there.
std::vector<ValueId> RecomputeAnalysis::kept(std::span<const OpId> ops, int32_t before_block) const {
  std::vector<ValueId> kept;
  std::set<ValueId> missing;
  const auto is_at_hand = [&](ValueId v) { return !v.valid() || !missing.contains(root(v)); };
  for (const OpId id : ops) {
    const Op& op = graph_.op(id);
    if (op.def->is_view || op.def->state == ir::StateAccess::kRead) continue;
    int64_t largest = 0;
    for (const ValueId v : op.outputs) largest = std::max(largest, graph_.type(v).bytes().count);
    for (const ValueId v : op.outputs) {
      const ValueId sum = sum_of(op);
      const bool is_from_sum = op.def->rebuild != nullptr && sum.valid() && sum != v;
      const bool has_operands = is_from_sum ? is_at_hand(sum) : std::ranges::all_of(op.inputs, is_at_hand);
      const bool is_small = 8 * graph_.type(v).bytes().count < largest;
      if (op.def->recompute == ir::RecomputeClass::kNearlyFree && has_operands && !is_small) continue;
      if (is_read(v, before_block))
        kept.push_back(v);
      else
        missing.insert(v);
    }
  }
  return kept;
}

RecomputeOptions RecomputeAnalysis::values(const std::vector<RecomputeUnit>& units) const {
  RecomputeOptions options{.last_forward_op = last_forward_op_};
  std::vector<bool> inside(graph_.num_values(), false), stays(graph_.num_values(), false);
  for (const RecomputeUnit& unit : units) drop(unit, inside, stays);
  const auto is_dropped = [&](ValueId v) { return inside[at(v)] && !stays[at(v)]; };
  for (int32_t i = 0; i < static_cast<int32_t>(inside.size()); ++i)
    if (is_dropped({i})) options.dropped.push_back({i});
  for (const RecomputeUnit& unit : units) {
    if (unit.first == unit.last) continue;
    RecomputeRound round{unit.last, {}};
    for (const ValueId v : kept(ops_of(unit), unit.last))
      if (is_dropped(v)) round.hold.push_back(v);
    options.rounds.push_back(std::move(round));
  }
  return options;
}

RecomputeGain RecomputeAnalysis::gain(const RecomputeUnit& unit) const {
  std::vector<bool> inside(graph_.num_values(), false), stays(graph_.num_values(), false);
  drop(unit, inside, stays);
  const auto is_dropped = [&](ValueId v) { return inside[at(v)] && !stays[at(v)]; };
  RecomputeGain gain;
  std::vector<ValueId> asked;
  for (const ValueId v : kept(ops_of(unit), kAnyBlock)) {
    if (!is_dropped(v)) continue;
    gain.bytes += graph_.type(v).bytes().count;
    asked.push_back(v);
  }
  std::set<OpId> done;
  while (!asked.empty()) {
    const ValueId v = asked.back();
    asked.pop_back();
    const Op& op = producer(v);
    if (!is_dropped(v) || !done.insert(graph_.value(v).producer).second) continue;
    const ir::Cost cost = ir::op_cost(graph_, op);
    gain.cost.flops += cost.flops;
    gain.cost.bytes += cost.bytes;
    for (const ValueId in : op.inputs)
      if (in.valid()) asked.push_back(root(in));
  }
  std::ranges::copy_if(ops_of(unit), std::back_inserter(gain.cloned),
                       [&](OpId id) { return done.contains(id); });
  return gain;
}

}  // namespace plimsoll::passes
