// The portfolio, in order, until the lower bound or the capacity is reached; then the search.
#include "memory/offsets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "base/check.h"
#include "memory/greedy.h"
#include "memory/problem.h"
#include "memory/validator.h"

namespace plimsoll::memory {

namespace {

enum class Fill { kSkyline, kFirstFit };

struct Order {
  const char* name;
  Fill fill;
  std::array<Key, 3> keys;
};

// The first reaches the bound on most training traces, size first wins on some very large ones.
constexpr std::array kPortfolio{
    Order{"skyline load", Fill::kSkyline, {Key::kLoad, Key::kLifetime, Key::kArea}},
    Order{"first fit size", Fill::kFirstFit, {Key::kSize, Key::kLifetime, Key::kLoad}},
    Order{"first fit area", Fill::kFirstFit, {Key::kArea, Key::kLoad, Key::kSize}},
    Order{"skyline lifetime", Fill::kSkyline, {Key::kLifetime, Key::kSize, Key::kLoad}},
    Order{"first fit lifetime", Fill::kFirstFit, {Key::kLifetime, Key::kSize, Key::kLoad}},
    Order{"skyline area", Fill::kSkyline, {Key::kArea, Key::kLoad, Key::kSize}},
    Order{"first fit load", Fill::kFirstFit, {Key::kLoad, Key::kSize, Key::kLifetime}},
    Order{"skyline size", Fill::kSkyline, {Key::kSize, Key::kLifetime, Key::kLoad}},
};

Packing pack(const Problem& problem, const Order& order) {
  const std::vector<int32_t> rank = rank_by(problem, order.keys);
  return order.fill == Fill::kSkyline ? skyline(problem, rank) : first_fit(problem, rank);
}

/// Lets every item fall to its lowest gap, lowest item first: never higher than before.
Packing settle(const Problem& problem, const Packing& packing) {
  std::vector<int32_t> order(packing.offsets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return packing.offsets[static_cast<size_t>(a)] < packing.offsets[static_cast<size_t>(b)];
  });
  std::vector<int32_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  return first_fit(problem, rank);
}

}  // namespace

Placement assign_offsets(std::span<const Buffer> buffers, const OffsetOptions& options) {
  const Status legal = check_buffers(buffers);
  PLIMSOLL_CHECK(legal.ok(), legal.error().message());
  Placement placement;
  placement.offsets.assign(buffers.size(), 0);
  placement.method = "empty";
  placement.optimal = true;
  const Problem problem = make_problem(buffers);
  if (problem.items.empty()) return placement;

  placement.lower_bound = problem.bound_bytes;
  const int64_t enough = std::max(problem.bound_bytes, options.capacity.value_or(0));
  placement.height = std::numeric_limits<int64_t>::max();
  const auto offer = [&](const Packing& packing, std::string method) {
    int64_t height = 0;
    for (size_t i = 0; i < problem.items.size(); ++i)
      height = std::max(
          height, packing.offsets[i] * problem.unit + buffers[static_cast<size_t>(problem.source[i])].size);
    if (height >= placement.height) return;
    placement.height = height;
    placement.method = std::move(method);
    for (size_t i = 0; i < problem.items.size(); ++i)
      placement.offsets[static_cast<size_t>(problem.source[i])] = packing.offsets[i] * problem.unit;
  };
  for (const Order& order : kPortfolio) {
    Packing packing = pack(problem, order);
    offer(packing, order.name);
    if (placement.height <= enough) break;
    offer(settle(problem, packing), std::string(order.name) + ", settled");
    if (placement.height <= enough) break;
  }
  placement.optimal = placement.height == placement.lower_bound;
  const Status valid = validate(buffers, placement);
  PLIMSOLL_CHECK(valid.ok(), valid.error().message());
  return placement;
}

}  // namespace plimsoll::memory
