// The greedy orders: first fit in a given order, the skyline, which takes the least feasible offset, and
// best fit in order of allocation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/problem.h"

namespace plimsoll::memory {

/// What an order looks at, most important first; larger comes first unless said otherwise.
enum class Key {
  kLoad,      ///< the largest load of a section that it lives in
  kLifetime,  ///< number of sections
  kArea,      ///< size times lifetime
  kSize,
  kEarly,  ///< born first comes first
  kLate,   ///< dies last comes first
};

/// Ranks of the items by `keys`, ties by index: rank[item] in [0, n), 0 is first.
std::vector<int32_t> rank_by(const Problem& problem, std::span<const Key> keys);

/// The inverse: order[rank[item]] = item.
std::vector<int32_t> order_of(std::span<const int32_t> rank);

/// For each item the section of largest load among its own, the first of equals.
/// Cost: O((sections + items) log sections).
std::vector<int32_t> peak_sections(const Problem& problem);

/// Places the items in the order of their ranks, each at the lowest offset where it fits.
/// Cost: O(n · placed below the gap), with whole runs of placed items skipped that live at other times.
Packing first_fit(const Problem& problem, std::span<const int32_t> rank);

/// Again and again places the item with the least feasible offset above the skyline of those placed, ties by
/// rank.
///
///   offset          ┌──┐          the skyline is the top of what lies in each section; an item rests on
///      │  ┌────┐    │  │          the highest part beneath it, and gaps below are given up
///      └──┴────┴────┴──┴── section
/// Cost: O((n + moves of waiting items between sections) · log n).
Packing skyline(const Problem& problem, std::span<const int32_t> rank);

struct BestFit {
  Packing packing;         ///< whole where nothing is left over
  int32_t left_over = -1;  ///< the first item that found no gap
};
/// Below `limit`: the items of `before` as first fit has them, the largest first; then the others as they are
/// born, the larger first, each in the smallest gap that holds it. What finds none is of `before` in the next
/// try, of which there are at most `most_tries`, and none behind `most_steps` steps.
/// Cost: O(n · (alive at once + those of `before`)) a try, which `packing.steps` counts, of all tries.
BestFit best_fit(const Problem& problem, std::vector<bool> before, int64_t limit, int64_t most_tries,
                 int64_t most_steps);

}  // namespace plimsoll::memory
