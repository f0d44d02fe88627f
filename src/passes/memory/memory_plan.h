// Assigns arena offsets to a bound program, and reports the result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/buffer.h"
#include "passes/memory/bind_storage.h"

namespace plimsoll::passes {

/// Every storage of the arena starts at a multiple of this: a cache line, and AVX-512's vector.
inline constexpr int64_t kStorageAlignment = 64;

/// The arena and the persistent block are whole pages.
inline constexpr int64_t kPageBytes = 4096;

/// A disk is read and written past the system's cache in whole pages alone.
inline constexpr int64_t alignment_of(ir::MemorySpace space) {
  return space == ir::MemorySpace::kDisk ? kPageBytes : kStorageAlignment;
}

struct MemoryPlanOptions {
  int64_t max_nodes = 20'000;  ///< bounds the offset search
  /// The search ends this close above the lower bound, as a share of it: a 256th costs a MiB of a 256 MiB
  /// arena, and what would take it away is most of a plan's time. 0: the least that can be found.
  double tolerance = 1.0 / 256;
  /// A device arena that cannot be lower than this is packed once and not improved: such a plan is not taken.
  std::optional<int64_t> room_bytes = {};
  /// What other programs of the session take in any case, by space: they share their arenas, so that this one
  /// needs to be no lower.
  std::array<int64_t, ir::kNumSpaces> taken_bytes = {};
  /// No offsets: arenas of the size at which the offset search would end. For plans that are only compared.
  bool bound_only = false;
  bool separate = false;  ///< no sharing: every storage gets bytes of its own (the oracle of tests)
};

/// A tensor alive at the peak.
struct AliveTensor {
  std::string op;
  std::string layer;
  std::string type;
  int64_t bytes = 0;
  Category category = Category::kActivations;
};

/// What a program needs of one space beside states. All bytes.
struct PoolPlan {
  int64_t arena_bytes = 0;        ///< the top of the placement, in whole pages
  int64_t lower_bound_bytes = 0;  ///< no placement can be lower
  bool optimal = false;
  std::string method;

  int64_t live_bytes_at_peak = 0;  ///< logical; + padding + fragmentation = arena_bytes
  int64_t padding_bytes = 0;
  int64_t category_bytes[kNumCategories] = {};  ///< logical bytes alive at the peak, by Category
  int32_t peak_position = 0;                    ///< in the order
  std::string peak_op;
  std::string peak_layer;
  std::vector<AliveTensor> alive;  ///< at the peak, largest first

  [[nodiscard]] int64_t fragmentation_bytes() const {
    return arena_bytes - live_bytes_at_peak - padding_bytes;
  }
};

/// Offsets by storage, each in its space's arena; -1 for states and empty storages.
struct MemoryPlan {
  std::vector<int64_t> offsets;
  std::array<PoolPlan, ir::kNumSpaces> pools;

  [[nodiscard]] const PoolPlan& pool(ir::MemorySpace space) const {
    return pools[static_cast<size_t>(space)];
  }
  [[nodiscard]] const PoolPlan& device() const { return pool(ir::MemorySpace::kDevice); }
};

/// The top of a placement at which the offset search ends where so much is alive at most.
int64_t enough_bytes(int64_t alive_bytes, const MemoryPlanOptions& options);

/// Assigns offsets to the arena storages of `binding`, space by space; the result has passed the independent
/// validator. Deterministic.
MemoryPlan plan_memory(const ir::Graph& graph, const Binding& binding, const MemoryPlanOptions& options = {});

/// The lifetimes as the memory room takes them: one buffer an arena storage of that space that has bytes, in
/// order. `storage_of[i]` is the storage of buffer i.
std::vector<memory::Buffer> arena_buffers(const Binding& binding, ir::MemorySpace space,
                                          std::vector<int32_t>* storage_of);

}  // namespace plimsoll::passes
