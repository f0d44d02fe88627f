#include "passes/recompute_policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/check.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

size_t slot(ValueId v) { return static_cast<size_t>(v.index); }

/// "layers.3" of "layers.3.mlp" for block 3; the whole name where the number is no part of it.
std::string block_name(const Op& op) {
  const std::string number = "." + std::to_string(op.block);
  for (size_t at = op.layer.find(number); at != std::string::npos; at = op.layer.find(number, at + 1)) {
    const size_t end = at + number.size();
    if (end == op.layer.size() || op.layer[end] == '.') return op.layer.substr(0, end);
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

bool contains(const RecomputeUnit& unit, const Op& op) {
  return op.block >= unit.first && op.block <= unit.last && (unit.part.empty() || unit.part == part_name(op));
}

/// A program as recomputation sees it: what stands before the loss, and who reads it behind that.
class Halves {
 public:
  Halves(const Graph& graph, OpId last_forward_op) : graph_(graph) {
    const auto& order = graph.order();
    const auto last = std::find(order.begin(), order.end(), last_forward_op);
    PLIMSOLL_CHECK(last != order.end(), "recompute: the op that gives the loss is gone");
    forward_ = {order.data(), static_cast<size_t>(last - order.begin()) + 1};
    users_.resize(graph.num_values());
    for (size_t i = forward_.size(); i < order.size(); ++i) {
      const Op& op = graph.op(order[i]);
      if (op.block == ir::kUpdateBlock) continue;
      for (const ValueId v : op.inputs)
        if (v.valid()) users_[slot(root(v))].push_back(op.block);
    }
  }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] std::span<const OpId> forward() const { return forward_; }
  [[nodiscard]] const Op& producer(ValueId v) const { return graph_.op(graph_.value(v).producer); }
  [[nodiscard]] ValueId root(ValueId v) const {
    while (producer(v).def->is_view) v = producer(v).inputs[0];
    return v;
  }
  /// Blocks of the ops of backward that read a storage, once an op.
  [[nodiscard]] const std::vector<int32_t>& backward_blocks(ValueId owner) const {
    return users_[slot(owner)];
  }

 private:
  const Graph& graph_;
  std::span<const OpId> forward_;
  std::vector<std::vector<int32_t>> users_;  // by value that owns a storage
};

bool sums_first(const Op& op, ValueId v) {
  return op.def->norm.sum >= 0 && op.outputs[static_cast<size_t>(op.def->norm.sum)] == v;
}

/// What backward, as far as `counts` takes its blocks, would have kept of forward: what it reads and what is
/// not nearly free to have again from what is there.
std::vector<bool> kept_values(const Halves& halves, const std::function<bool(int32_t)>& counts,
                              const std::function<bool(const Op&)>& among) {
  const Graph& graph = halves.graph();
  std::vector<bool> kept(graph.num_values(), false), at_hand(graph.num_values(), true);
  const auto is_at_hand = [&](ValueId v) { return !v.valid() || at_hand[slot(halves.root(v))]; };
  for (const OpId id : halves.forward()) {
    const Op& op = graph.op(id);
    if (op.def->is_view || op.def->state == ir::StateAccess::kRead || !among(op)) continue;
    int64_t largest = 0;
    for (const ValueId v : op.outputs) largest = std::max(largest, graph.type(v).bytes().count);
    for (const ValueId v : op.outputs) {
      const bool from_sum = op.def->rebuild != nullptr && op.def->norm.sum >= 0 && !sums_first(op, v);
      const bool operands = from_sum ? at_hand[slot(op.outputs[static_cast<size_t>(op.def->norm.sum)])]
                                     : std::ranges::all_of(op.inputs, is_at_hand);
      const bool is_small = 8 * graph.type(v).bytes().count < largest;
      const bool is_free = op.def->recompute == ir::RecomputeClass::kNearlyFree && operands && !is_small;
      kept[slot(v)] = !is_free && std::ranges::any_of(halves.backward_blocks(v), counts);
      at_hand[slot(v)] = is_free || kept[slot(v)];
    }
  }
  return kept;
}

/// Which values of forward the units do not keep.
std::vector<bool> dropped_values(const Halves& halves, const std::vector<RecomputeUnit>& units) {
  const Graph& graph = halves.graph();
  const auto unit_of = [&](const Op& op) -> const RecomputeUnit* {
    if (op.block < 0) return nullptr;
    const auto it = std::ranges::find_if(units, [&](const RecomputeUnit& u) { return contains(u, op); });
    return it == units.end() ? nullptr : &*it;
  };
  std::vector<const RecomputeUnit*> owner(graph.num_values(), nullptr);
  std::vector<bool> stays(graph.num_values(), false);
  for (const OpId id : halves.forward()) {
    const Op& op = graph.op(id);
    const RecomputeUnit* unit = unit_of(op);
    if (unit == nullptr) continue;
    const auto enters = [&](ValueId v) { return v.valid() && owner[slot(halves.root(v))] != unit; };
    const bool adds = op.def->norm.sum >= 0 && enters(op.inputs[0]) && enters(op.inputs[1]);
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (enters(op.inputs[i]) && !(adds && i < 2)) stays[slot(halves.root(op.inputs[i]))] = true;
    if (op.def->is_view) continue;
    for (const ValueId v : op.outputs) {
      owner[slot(v)] = unit;
      const auto is_elsewhere = [&](int32_t block) { return block < unit->first || block > unit->last; };
      if (adds && sums_first(op, v)) stays[slot(v)] = true;
      if (std::ranges::any_of(halves.backward_blocks(v), is_elsewhere)) stays[slot(v)] = true;
    }
  }
  std::vector<bool> dropped(graph.num_values(), false);
  for (size_t i = 0; i < dropped.size(); ++i) dropped[i] = owner[i] != nullptr && !stays[i];
  return dropped;
}

std::string known_layers(const std::vector<RecomputeUnit>& layers) {
  std::string first, last;
  for (const RecomputeUnit& layer : layers) {
    if (layer.first == layers.front().first) first += (first.empty() ? "" : ", ") + layer.name;
    if (layer.part.empty()) last = layer.name;
  }
  return "this model's are " + first + " to " + last;
}

Error wrong_layers(std::string what, const std::vector<RecomputeUnit>& layers) {
  return {ErrorCode::kInvalidArgument, std::move(what), "memory.recompute", known_layers(layers)};
}

RecomputeUnit run_of(const RecomputeUnit& first, const RecomputeUnit& last) {
  if (first.first == last.first) return first;
  return {first.first, last.last, "", first.name + ".." + last.name};
}

/// The k runs, the longer ones first.
std::vector<RecomputeUnit> segments(const std::vector<RecomputeUnit>& blocks, int64_t k) {
  const auto n = static_cast<int64_t>(blocks.size());
  std::vector<RecomputeUnit> units;
  for (int64_t s = 0, begin = 0; s < k; ++s) {
    const int64_t end = begin + n / k + (s < n % k ? 1 : 0);
    units.push_back(run_of(blocks[static_cast<size_t>(begin)], blocks[static_cast<size_t>(end - 1)]));
    begin = end;
  }
  return units;
}

Result<std::vector<RecomputeUnit>> named_units(const std::vector<RecomputeUnit>& layers,
                                               const std::vector<std::string>& patterns) {
  std::vector<RecomputeUnit> units;
  for (const std::string& pattern : patterns) {
    const auto named = [&](const std::string& name) {
      return std::ranges::find_if(layers, [&](const auto& l) { return l.part.empty() && l.name == name; });
    };
    const size_t dots = pattern.find("..");
    const size_t known = units.size();
    if (dots != std::string::npos) {
      const auto first = named(pattern.substr(0, dots)), last = named(pattern.substr(dots + 2));
      if (first != layers.end() && last != layers.end() && first->first <= last->first)
        units.push_back(run_of(*first, *last));
    } else {
      for (const RecomputeUnit& layer : layers)
        if (::fnmatch(pattern.c_str(), layer.name.c_str(), 0) == 0) units.push_back(layer);
    }
    if (units.size() == known)
      return wrong_layers(fmt::format("\"{}\" names no layer of this model", pattern), layers);
  }
  return units;
}

/// Without what another unit takes in, each once, in the order of the model.
Result<std::vector<RecomputeUnit>> disjoint(std::vector<RecomputeUnit> units,
                                            const std::vector<RecomputeUnit>& layers) {
  std::vector<RecomputeUnit> result;
  const auto covers = [](const RecomputeUnit& a, const RecomputeUnit& b) {
    return a.first <= b.first && b.last <= a.last && (a.part.empty() || a.part == b.part);
  };
  std::ranges::stable_sort(units, [](const auto& a, const auto& b) {
    return std::pair(a.last - a.first, a.part.empty()) > std::pair(b.last - b.first, b.part.empty());
  });
  for (RecomputeUnit& unit : units) {
    if (std::ranges::any_of(result, [&](const auto& other) { return covers(other, unit); })) continue;
    for (const RecomputeUnit& other : result)
      if (other.part.empty() && unit.part.empty() && other.first <= unit.last && unit.first <= other.last)
        return wrong_layers(fmt::format("{} and {} overlap", other.name, unit.name), layers);
    result.push_back(std::move(unit));
  }
  std::ranges::stable_sort(result, [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

}  // namespace

std::vector<RecomputeUnit> recomputable_layers(const Graph& graph) {
  std::vector<RecomputeUnit> layers;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (op.block < 0) continue;
    const auto add = [&](const std::string& part, const std::string& name) {
      const auto is_it = [&](const auto& l) { return l.first == op.block && l.part == part; };
      if (layers.empty() || std::ranges::none_of(layers, is_it))
        layers.push_back({op.block, op.block, part, name});
    };
    add("", block_name(op));
    if (const std::string part = part_name(op); !part.empty()) add(part, block_name(op) + "." + part);
  }
  std::ranges::stable_sort(layers, {}, &RecomputeUnit::first);
  return layers;
}

Result<std::vector<RecomputeUnit>> recompute_units(const Graph& graph, OpId last_forward_op,
                                                   const RecomputePolicy& policy) {
  using Kind = RecomputePolicy::Kind;
  if (policy.kind == Kind::kNone) return std::vector<RecomputeUnit>{};
  const std::vector<RecomputeUnit> layers = recomputable_layers(graph);
  std::vector<RecomputeUnit> blocks, units;
  std::ranges::copy_if(layers, std::back_inserter(blocks), [](const auto& l) { return l.part.empty(); });
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  if (policy.count > num_blocks)
    return wrong_layers(fmt::format("{} is more than the model has blocks, {}", policy.count, num_blocks),
                        layers);
  switch (policy.kind) {
    case Kind::kFull:
      return blocks;
    case Kind::kEvery:
      PLIMSOLL_CHECK(policy.count > 0);
      for (int64_t i = policy.count; i <= num_blocks; i += policy.count)
        units.push_back(blocks[static_cast<size_t>(i - 1)]);
      return units;
    case Kind::kSegments:
      if (num_blocks == 0) return units;
      return segments(
          blocks, policy.count > 0 ? policy.count : std::lround(std::sqrt(static_cast<double>(num_blocks))));
    case Kind::kLayers: {
      PLIMSOLL_ASSIGN(units, named_units(layers, policy.layers));
      return disjoint(std::move(units), layers);
    }
    default:
      break;
  }
  for (const RecomputeUnit& block : blocks) {
    const RecomputeUnit* best = nullptr;
    double best_ratio = 0;
    for (const RecomputeUnit& layer : layers) {
      if (layer.first != block.first || layer.part.empty()) continue;
      const bool attends = layer.part.find("attn") != std::string::npos;
      if (policy.kind == Kind::kSelective) {
        const RecomputeGain gain = recompute_gain(graph, last_forward_op, layer);
        constexpr double kFlopsPerByte = 12;  // what a machine computes while it moves a byte
        const double ratio =
            static_cast<double>(gain.bytes) / (1 + gain.cost.flops + kFlopsPerByte * gain.cost.bytes);
        if (gain.bytes > 0 && ratio > best_ratio) best = &layer, best_ratio = ratio;
      } else if (attends == (policy.kind == Kind::kAttention)) {
        best = &layer;
      }
    }
    if (best != nullptr) units.push_back(*best);
  }
  if (units.empty()) return wrong_layers("no block has such a part", layers);
  return units;
}

RecomputeOptions recompute_values(const Graph& graph, OpId last_forward_op,
                                  const std::vector<RecomputeUnit>& units) {
  RecomputeOptions options{.last_forward_op = last_forward_op};
  if (units.empty()) return options;
  const Halves halves(graph, last_forward_op);
  const std::vector<bool> dropped = dropped_values(halves, units);
  for (size_t i = 0; i < dropped.size(); ++i)
    if (dropped[i]) options.dropped.push_back({static_cast<int32_t>(i)});
  for (const RecomputeUnit& unit : units) {
    if (unit.first == unit.last) continue;
    const std::vector<bool> kept = kept_values(
        halves, [&](int32_t block) { return block < unit.last; },
        [&](const Op& op) { return contains(unit, op); });
    RecomputeRound round{unit.last, {}};
    for (const ValueId v : options.dropped)
      if (kept[slot(v)] && contains(unit, halves.producer(v))) round.hold.push_back(v);
    options.rounds.push_back(std::move(round));
  }
  return options;
}

RecomputeGain recompute_gain(const Graph& graph, OpId last_forward_op, const RecomputeUnit& unit) {
  const Halves halves(graph, last_forward_op);
  const std::vector<bool> dropped = dropped_values(halves, {unit});
  const std::vector<bool> kept = kept_values(
      halves, [](int32_t) { return true; }, [&](const Op& op) { return contains(unit, op); });
  RecomputeGain gain;
  std::vector<ValueId> asked;
  for (size_t i = 0; i < dropped.size(); ++i) {
    const ValueId v{static_cast<int32_t>(i)};
    if (!dropped[i] || !kept[i]) continue;
    gain.bytes += graph.type(v).bytes().count;
    asked.push_back(v);
  }
  std::set<OpId> done;
  while (!asked.empty()) {
    const ValueId v = asked.back();
    asked.pop_back();
    const Op& op = halves.producer(v);
    if (!dropped[slot(v)] || !done.insert(graph.value(v).producer).second) continue;
    const ir::Cost cost = ir::op_cost(graph, op);
    gain.cost.flops += cost.flops;
    gain.cost.bytes += cost.bytes;
    for (const ValueId in : op.inputs)
      if (in.valid()) asked.push_back(halves.root(in));
  }
  return gain;
}

}  // namespace plimsoll::passes
