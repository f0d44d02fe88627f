#include "passes/recompute/overwritten.h"

#include <algorithm>
#include <tuple>

#include "ir/op_def.h"
#include "ir/span.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {
namespace {

bool meet(const StorageRange& a, const StorageRange& b) {
  return a.storage == b.storage && a.begin < b.end && b.begin < a.end;
}

/// A range of its own, or one with those that it meets.
void join(std::vector<StorageRange>& ranges, StorageRange range) {
  for (size_t i = 0; i < ranges.size();) {
    if (!meet(ranges[i], range)) {
      ++i;
      continue;
    }
    range.begin = std::min(range.begin, ranges[i].begin);
    range.end = std::max(range.end, ranges[i].end);
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
  ranges.push_back(range);
}

}  // namespace

StorageRange range_of(const ir::Graph& graph, const Binding& binding, ir::ValueId v) {
  const Place& place = binding.places[static_cast<size_t>(v.index)];
  return {place.storage, place.offset_bytes,
          place.offset_bytes + ir::span_bytes(graph.type(v), place.strides)};
}

std::vector<StorageRange> overwritten(const ir::Graph& graph, const Binding& binding, const ir::Op& op) {
  std::vector<StorageRange> operands, ranges;
  for (const ir::ValueId v : op.inputs)
    if (v.valid()) operands.push_back(range_of(graph, binding, v));
  for (const ir::ValueId v : op.outputs) {
    const StorageRange result = range_of(graph, binding, v);
    if (std::ranges::any_of(operands, [&](const auto& o) { return meet(o, result); })) join(ranges, result);
  }
  for (const StorageRange& operand : operands)
    if (std::ranges::any_of(ranges, [&](const auto& r) { return meet(r, operand); })) join(ranges, operand);
  for (const ir::ValueId v : op.outputs) {
    const StorageRange result = range_of(graph, binding, v);
    if (std::ranges::any_of(ranges, [&](const auto& r) { return meet(r, result); })) join(ranges, result);
  }
  std::ranges::sort(ranges, {}, [](const auto& r) { return std::tuple(r.storage, r.begin); });
  return ranges;
}

int64_t double_run_bytes(const std::vector<StorageRange>& ranges) {
  int64_t bytes = 0;
  for (const StorageRange& range : ranges)
    bytes += round_up(range.end, kStorageAlignment) - range.begin / kStorageAlignment * kStorageAlignment;
  return bytes;
}

}  // namespace plimsoll::passes
