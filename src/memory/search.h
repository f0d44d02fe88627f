// The branch and bound over one capacity: is there a packing no higher than this?
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/problem.h"

namespace plimsoll::memory {

/// How a search orders its choices. It changes when a packing is found, not whether there is one: searches of
/// this kind either succeed almost without backtracking or hardly ever, so many short ones that differ beat a
/// long one.
struct Strategy {
  // Items are tried by lifetime^p · size^q · exp(noise · random), largest first.
  double lifetime_power = 1;
  double size_power = 1;
  double noise = 0;
  uint64_t seed = 0;
  bool fewest_first = true;  ///< branch where the fewest items fit; else at the lowest floor
  bool flush_first =
      false;  ///< first the items that end level with a neighbour or touch the walls of their valley
};

/// The strategy of this number: the plain orders first, then random ones. The same everywhere.
Strategy strategy_number(int64_t number);

enum class Outcome { kFound, kImpossible, kOutOfNodes };

struct SearchResult {
  Outcome outcome = Outcome::kOutOfNodes;
  Packing packing;       ///< where found
  int64_t nodes = 0;     ///< spent
  int64_t strategy = 0;  ///< the number of the one that found it
};

/// Looks for a packing of height <= capacity, in units, within max_nodes.
/// kImpossible is a proof that there is none (up to a collision of 64-bit hashes).
/// Async: gives up, kOutOfNodes, soon after *cancelled becomes true.
/// Determinism: a pure function of problem, capacity, max_nodes and strategy unless cancelled.
SearchResult search(const Problem& problem, int64_t capacity, int64_t max_nodes, const Strategy& strategy,
                    const std::atomic<bool>* cancelled = nullptr);

/// Runs strategies 0, 1, … with growing shares of max_nodes until one is done. The one with the lowest number
/// that finds a packing wins, and the shares are fixed beforehand: the result does not depend on num_threads.
SearchResult search_all(const Problem& problem, int64_t capacity, int64_t max_nodes, int num_threads);

}  // namespace plimsoll::memory
