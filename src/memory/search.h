// The branch and bound over one capacity: is there a packing no higher than this?
#pragma once

#include <cstdint>

#include "memory/problem.h"

namespace plimsoll::memory {

/// How a search orders its choices. It does not change what can be found, only when.
struct Strategy {
  enum class Value { kArea, kLifetime, kSize };
  Value value = Value::kArea;  ///< which item is tried first
  bool fewest_first = true;    ///< branch where the fewest items fit; else at the lowest floor
  bool flush_first = false;    ///< try items first that end level with a neighbour or fill their valley
  uint64_t seed = 0;           ///< not 0: shuffles the values a little
};

enum class Outcome { kFound, kImpossible, kOutOfNodes };

struct SearchResult {
  Outcome outcome = Outcome::kOutOfNodes;
  Packing packing;    ///< where found
  int64_t nodes = 0;  ///< spent
};

/// Looks for a packing of height <= capacity, in units, within max_nodes.
/// kImpossible is a proof that there is none (up to a collision of 64-bit hashes).
/// Determinism: a pure function of its arguments.
SearchResult search(const Problem& problem, int64_t capacity, int64_t max_nodes, const Strategy& strategy);

}  // namespace plimsoll::memory
