#include "passes/memory/memory_plan.h"

#include <algorithm>

#include "memory/live.h"
#include "memory/offsets.h"

namespace plimsoll::passes {
namespace {

/// The value that a storage was made for: the first one placed in it.
std::vector<ir::ValueId> first_values(const ir::Graph& graph, const Binding& binding) {
  std::vector<ir::ValueId> first(binding.storages.size());
  for (size_t v = 0; v < graph.num_values() && v < binding.places.size(); ++v) {
    const int32_t s = binding.places[v].storage;
    if (s >= 0 && !first[static_cast<size_t>(s)].valid())
      first[static_cast<size_t>(s)] = ir::ValueId{static_cast<int32_t>(v)};
  }
  return first;
}

/// Fills in the fields of the plan that describe its peak.
void describe_peak(const ir::Graph& graph, const Binding& binding, std::span<const memory::Buffer> buffers,
                   std::span<const int32_t> storage_of, const memory::LiveProfile& profile, PoolPlan& plan) {
  if (profile.peaks.empty()) return;
  plan.peak_position = static_cast<int32_t>(profile.peaks.front().lower);
  const ir::Op& op = graph.op(graph.order()[static_cast<size_t>(plan.peak_position)]);
  plan.peak_op = op.def->name;
  plan.peak_layer = op.layer;
  const auto values = first_values(graph, binding);
  for (const int64_t b : profile.alive_at_peak) {
    const int32_t s = storage_of[static_cast<size_t>(b)];
    const Storage& storage = binding.storages[static_cast<size_t>(s)];
    const ir::Op& producer = graph.op(storage.producer);
    const ir::ValueId value = values[static_cast<size_t>(s)];
    plan.live_bytes_at_peak += storage.bytes;
    plan.padding_bytes += buffers[static_cast<size_t>(b)].size - storage.bytes;
    plan.category_bytes[static_cast<size_t>(storage.category)] += storage.bytes;
    plan.alive.push_back(
        {std::string(producer.def->name), producer.layer,
         value.valid() ? ir::to_string(graph.type(value)) : std::string(name(storage.category)),
         storage.bytes, storage.category});
  }
}

}  // namespace

std::vector<memory::Buffer> arena_buffers(const Binding& binding, ir::MemorySpace space,
                                          std::vector<int32_t>* storage_of) {
  std::vector<memory::Buffer> buffers;
  for (size_t i = 0; i < binding.storages.size(); ++i) {
    const Storage& s = binding.storages[i];
    if (s.space != space || s.state >= 0 || s.bytes == 0 || s.first < 0) continue;
    const int64_t unit = alignment_of(space);
    buffers.push_back({s.first, s.last + 1, round_up(s.bytes, unit), s.on_pages ? kPageBytes : unit});
    if (storage_of != nullptr) storage_of->push_back(static_cast<int32_t>(i));
  }
  return buffers;
}

namespace {

PoolPlan plan_pool(const ir::Graph& graph, const Binding& binding, ir::MemorySpace space,
                   const MemoryPlanOptions& options, std::vector<int64_t>& offsets) {
  PoolPlan plan;
  std::vector<int32_t> storage_of;
  const std::vector<memory::Buffer> buffers = arena_buffers(binding, space, &storage_of);
  if (buffers.empty() && space != ir::MemorySpace::kDevice) return plan;
  const memory::LiveProfile profile = memory::live_profile(buffers);
  const int64_t enough = enough_bytes(profile.peak_bytes, options);
  if (options.bound_only) {
    plan.arena_bytes = enough;
    plan.lower_bound_bytes = profile.peak_bytes;
    plan.method = "bound";
  } else if (options.separate) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      offsets[static_cast<size_t>(storage_of[i])] = plan.arena_bytes;
      plan.arena_bytes += buffers[i].size;
    }
    plan.method = "separate";
    plan.lower_bound_bytes = plan.arena_bytes;
  } else {
    // Which has passed the validator.
    const bool hopeless = space == ir::MemorySpace::kDevice &&
                          profile.peak_bytes > options.room_bytes.value_or(profile.peak_bytes);
    const int64_t capacity = std::max(enough, options.taken_bytes[static_cast<size_t>(space)]);
    const memory::Placement placement = memory::assign_offsets(
        buffers, {.max_nodes = options.max_nodes, .capacity = capacity, .first_alone = hopeless});
    for (size_t i = 0; i < buffers.size(); ++i)
      offsets[static_cast<size_t>(storage_of[i])] = placement.offsets[i];
    plan.arena_bytes = placement.height;
    plan.lower_bound_bytes = placement.lower_bound;
    plan.optimal = placement.optimal;
    plan.method = placement.method;
  }
  // Memory comes in pages, so the arena ends with one: what is planned is what is resident.
  plan.arena_bytes = round_up(plan.arena_bytes, kPageBytes);
  describe_peak(graph, binding, buffers, storage_of, profile, plan);
  return plan;
}

}  // namespace

int64_t enough_bytes(int64_t alive_bytes, const MemoryPlanOptions& options) {
  return static_cast<int64_t>(static_cast<double>(alive_bytes) * (1 + options.tolerance));
}

MemoryPlan plan_memory(const ir::Graph& graph, const Binding& binding, const MemoryPlanOptions& options) {
  MemoryPlan plan;
  plan.offsets.assign(binding.storages.size(), -1);
  for (size_t s = 0; s < ir::kNumSpaces; ++s)
    plan.pools[s] = plan_pool(graph, binding, static_cast<ir::MemorySpace>(s), options, plan.offsets);
  return plan;
}

}  // namespace plimsoll::passes
