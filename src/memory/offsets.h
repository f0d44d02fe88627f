// Offset assignment: given lifetimes and sizes, an address for each buffer so that the top is low.
// A portfolio of greedy orders comes first; the largest live sum is a lower bound, and reaching it proves the
// plan optimal. What remains goes to a branch and bound whose nodes, never its seconds, are bounded, so that
// the same input gives the same plan on any machine and any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "memory/buffer.h"

namespace plimsoll::memory {

/// How much is spent on a low top.
struct OffsetOptions {
  /// Bounds the branch and bound, over all its strategies together; 0 leaves the greedy orders alone.
  /// A node whose propagation is long counts more than once, so that the bound is one of work.
  int64_t max_nodes = 40'000;
  /// Threads that share the strategies; the plan does not depend on it.
  int num_threads = 1;
  /// Good enough: stop at this height even though the lower bound is below it.
  std::optional<int64_t> capacity = std::nullopt;
  /// The first greedy order and nothing else: for what will not be used.
  bool first_alone = false;
};

/// Assigns an offset to each buffer. The result has passed `validate`.
/// lower_bound: the largest live sum, sizes rounded up to the alignment that all share (but for the topmost).
/// Precondition: check_buffers(buffers); it is checked.
/// Determinism: a pure function of buffers, max_nodes, capacity and first_alone.
/// Cost: O(n log n) per order in practice; memory O(n).
Placement assign_offsets(std::span<const Buffer> buffers, const OffsetOptions& options = {});

}  // namespace plimsoll::memory
