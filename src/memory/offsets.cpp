// The portfolio, in order, until the lower bound or the capacity is reached; then the search, down from above
// and up from below.
#include "memory/offsets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "memory/greedy.h"
#include "memory/problem.h"
#include "memory/search.h"
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
    Order{"skyline area", Fill::kSkyline, {Key::kArea, Key::kLoad, Key::kSize}},
    Order{"first fit area", Fill::kFirstFit, {Key::kArea, Key::kLoad, Key::kSize}},
    Order{"skyline lifetime", Fill::kSkyline, {Key::kLifetime, Key::kSize, Key::kLoad}},
    Order{"first fit lifetime", Fill::kFirstFit, {Key::kLifetime, Key::kSize, Key::kLoad}},
    Order{"skyline size", Fill::kSkyline, {Key::kSize, Key::kLifetime, Key::kLoad}},
    Order{"first fit load", Fill::kFirstFit, {Key::kLoad, Key::kSize, Key::kLifetime}},
};

// Items placed, over all orders: two orders for 20,000 buffers, which take 0.15 s a pass, all of them below
// 5,000.
constexpr int64_t kGreedyItems = 80'000;

// Skylines move each item a few times in a training step and hundreds of times where thousands of random
// lifetimes tangle; a step takes some 0.3 microseconds.
constexpr int64_t kMaxSteps = 1'000'000;

/// An order that learns: what reaches too high moves forward by a part of the order's length.
struct Promotion {
  Order start;
  int64_t part;
};

// Small steps and large ones solve different traces. Sixty rounds find what they will find; large cases get
// fewer, of some 3 milliseconds each for 3,000 buffers.
constexpr std::array kPromotions{
    Promotion{{"skyline load, promoted", Fill::kSkyline, {Key::kLoad, Key::kLifetime, Key::kArea}}, 10},
    Promotion{{"skyline area, promoted", Fill::kSkyline, {Key::kArea, Key::kLoad, Key::kSize}}, 4},
    Promotion{{"skyline area, promoted", Fill::kSkyline, {Key::kArea, Key::kLoad, Key::kSize}}, 10},
    Promotion{{"skyline load, promoted", Fill::kSkyline, {Key::kLoad, Key::kLifetime, Key::kArea}}, 4},
};
constexpr int64_t kMaxPromotions = 60;
constexpr int64_t kPromotedItems = 36'000;

/// The best assignment so far.
class Best {
 public:
  Best(std::span<const Buffer> buffers, const Problem& problem, std::optional<int64_t> capacity)
      : buffers_(buffers), problem_(problem), enough_(std::max(problem.bound_bytes, capacity.value_or(0))) {
    placement_.offsets.assign(buffers.size(), 0);
    placement_.height = std::numeric_limits<int64_t>::max();
    placement_.lower_bound = problem.bound_bytes;
  }

  /// Takes the packing if it is lower.
  void offer(const Packing& packing, std::string method) {
    int64_t height = 0;
    for (size_t i = 0; i < problem_.items.size(); ++i)
      height = std::max(height, packing.offsets[i] * problem_.unit + buffers_[source(i)].size);
    if (height >= placement_.height) return;
    for (size_t i = 0; i < problem_.items.size(); ++i)
      placement_.offsets[source(i)] = packing.offsets[i] * problem_.unit;
    placement_.height = height;
    placement_.method = std::move(method);
    height_units_ = packing.height;
  }

  [[nodiscard]] bool good_enough() const { return placement_.height <= enough_; }
  [[nodiscard]] bool within_a_hundredth() const { return is_within(100); }
  /// At most that part of the bound above what is enough.
  [[nodiscard]] bool is_within(int64_t part) const {
    return placement_.height <= enough_ + placement_.lower_bound / part;
  }
  [[nodiscard]] int64_t height_units() const { return height_units_; }
  /// The lowest height, in units, worth a search.
  [[nodiscard]] int64_t enough_units() const { return (enough_ - 1) / problem_.unit + 1; }

  /// `refuted`: there is no packing of fewer units than this.
  Placement take(int64_t refuted) {
    const bool padded = problem_.bound * problem_.unit != problem_.bound_bytes;
    placement_.optimal = placement_.height == placement_.lower_bound || (!padded && refuted >= height_units_);
    return std::move(placement_);
  }

 private:
  [[nodiscard]] size_t source(size_t item) const { return static_cast<size_t>(problem_.source[item]); }

  std::span<const Buffer> buffers_;
  const Problem& problem_;
  int64_t enough_;
  int64_t height_units_ = 0;
  Placement placement_;
};

/// Ranks by ascending value, ties by index.
template <typename T>
std::vector<int32_t> ranks_of(const std::vector<T>& values) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return values[at(a)] < values[at(b)]; });
  std::vector<int32_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[at(order[i])] = static_cast<int32_t>(i);
  return rank;
}

/// Lets every item fall to its lowest gap, lowest item first: never higher than before.
Packing settle(const Problem& problem, const Packing& packing) {
  return first_fit(problem, ranks_of(packing.offsets));
}

void try_greedy(const Problem& problem, bool first_alone, Best& best) {
  const auto items = static_cast<int64_t>(problem.items.size());
  int64_t steps = 0;
  int64_t left = std::max(kGreedyItems, 2 * items);
  for (const Order& order : kPortfolio) {
    if ((left -= 2 * items) < 0 || steps > kMaxSteps) return;
    const std::vector<int32_t> rank = rank_by(problem, order.keys);
    const Packing packing = order.fill == Fill::kSkyline ? skyline(problem, rank) : first_fit(problem, rank);
    steps += packing.steps;
    best.offer(packing, order.name);
    if (best.good_enough() || first_alone) return;
    best.offer(settle(problem, packing), std::string(order.name) + ", settled");
    if (best.good_enough()) return;
  }
}

/// Packs by skyline, moves what reaches above the bound forward in the order, and packs again: the order
/// learns which items are hard to place ("squeaky wheel", Joslin & Clements 1999).
void try_promoting(const Problem& problem, Best& best) {
  const auto items = static_cast<int64_t>(problem.items.size());
  const int64_t rounds = std::min(kMaxPromotions, kPromotedItems / items);
  if (rounds < 2) return;
  int64_t steps = 0;
  for (const auto& [order, part] : kPromotions) {
    std::vector<int32_t> rank = rank_by(problem, order.keys);
    std::vector<int64_t> place(rank.begin(), rank.end());
    for (int64_t round = 0; round < rounds && steps <= kMaxSteps; ++round) {
      const Packing packing = skyline(problem, rank);
      steps += packing.steps;
      best.offer(packing, order.name);
      if (best.good_enough()) return;
      for (size_t i = 0; i < place.size(); ++i)
        if (packing.offsets[i] + problem.items[i].size > problem.bound) place[i] -= items / part + 1;
      rank = ranks_of(place);
    }
  }
}

/// Sections times items alive in them: what a search keeps in memory, 4 bytes each and per thread.
int64_t num_members(const Problem& problem) {
  int64_t sum = 0;
  for (const Item& item : problem.items) sum += item.last - item.first;
  return sum;
}
// Far beyond what a search could solve: 18,000 buffers of a training step have some 10 million.
constexpr int64_t kMaxMembers = 1'000'000;

/// The logarithm to base 2 by a straight line between powers of two: the same bits on every machine.
double rough_log2(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return exponent + 2 * fraction - 2;
}

/// What is too large for a search: first fit, the largest first, which live where much does before others;
/// what reaches above the bound then moves forward as if it were larger, until the rest is not worth the
/// time.
void try_promoting_by_size(const Problem& problem, Best& best) {
  constexpr double kLoadWeight = 16, kLifetimeWeight = 0.1, kStep = 0.5;
  constexpr int64_t kItems = 1'200'000, kMostRounds = 60;  // some 0.1 s a round for 20,000 buffers
  const std::vector<int32_t> peaks = peak_sections(problem);
  std::vector<double> weight;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    const double share = static_cast<double>(problem.load[at(peaks[i])]) / static_cast<double>(problem.bound);
    weight.push_back(-rough_log2(static_cast<double>(item.size)) - kLoadWeight * rough_log2(share) -
                     kLifetimeWeight * rough_log2(item.last - item.first));
  }
  const int64_t rounds = std::min(kMostRounds, kItems / static_cast<int64_t>(weight.size()));
  for (int64_t round = 0; round < rounds && !best.within_a_hundredth(); ++round) {
    const Packing packing = first_fit(problem, ranks_of(weight));
    best.offer(packing, "first fit size, promoted");
    for (size_t i = 0; i < weight.size(); ++i)
      if (packing.offsets[i] + problem.items[i].size > problem.bound) weight[i] -= kStep;
  }
}

/// For windows that slide: what is loaded ahead and stored behind lives briefly, in many sizes, and overlaps
/// with what comes before and after it. First fit, the largest first and of equals what dies last; what
/// reaches near the top of the best so far then moves forward as if it were larger.
void try_promoting_late(const Problem& problem, Best& best) {
  constexpr double kStep = 0.5, kTop = 0.9;
  // Rounds of many items cost more, and what they find comes in the first ones.
  constexpr int64_t kItemsSquared = 1'000'000'000, kMostRounds = 30;
  std::vector<std::pair<double, int32_t>> weight;
  for (const Item& item : problem.items)
    weight.emplace_back(-rough_log2(static_cast<double>(item.size)), -item.last);
  const auto items = static_cast<int64_t>(weight.size());
  const int64_t rounds = std::min(kMostRounds, std::max<int64_t>(4, kItemsSquared / (items * items)));
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t round = 0; round < rounds && !best.good_enough(); ++round) {
    const Packing packing = first_fit(problem, ranks_of(weight));
    best.offer(packing, "first fit late, promoted");
    least = std::min(least, packing.height);
    const auto top = std::max(problem.bound, static_cast<int64_t>(kTop * static_cast<double>(least)));
    for (size_t i = 0; i < weight.size(); ++i)
      if (packing.offsets[i] + problem.items[i].size > top) weight[i].first -= kStep;
  }
}

/// For the same, as an allocator would have it, with what lives long placed before all; what found no gap is
/// placed before all as well. Lower and lower, until a hundredth of the bound is all that could be gained.
/// Whether that found something.
bool try_best_fit(const Problem& problem, Best& best) {
  constexpr int64_t kSteps = 20'000'000, kMostTries = 20;  // some 2 nanoseconds a step
  bool found = false;
  int64_t steps = 0;
  for (const int32_t part : {3, 1}) {
    std::vector<bool> long_lived;
    for (const Item& item : problem.items)
      long_lived.push_back(item.last - item.first > problem.num_sections() / part);
    for (int64_t low = problem.bound;
         steps <= kSteps && !best.good_enough() && best.height_units() - low > problem.bound / 100;) {
      const int64_t limit = low + (best.height_units() - low) / 2;
      const BestFit packed = best_fit(problem, long_lived, limit, kMostTries, kSteps - steps);
      steps += packed.packing.steps;
      if (packed.left_over < 0)
        best.offer(packed.packing, "best fit"), found = true;
      else
        low = limit;
    }
  }
  return found;
}

/// Searches at the height that would be enough with most of the nodes, then by bisection between what is
/// refuted or given up and what is found. Returns the least height, in units, that is not refuted.
int64_t try_search(const Problem& problem, const OffsetOptions& options, Best& best) {
  int64_t refuted = problem.bound;  // no packing has fewer units
  int64_t low = std::max(refuted, best.enough_units());
  int64_t left = num_members(problem) <= kMaxMembers ? options.max_nodes : 0;
  for (int64_t target = low; left > 0 && low < best.height_units() && !best.good_enough();
       target = low + (best.height_units() - 1 - low) / 2) {
    const int64_t share = std::max<int64_t>(target == best.enough_units() ? left / 4 * 3 : left / 2, 1);
    const SearchResult result = search_all(problem, target, share, options.num_threads);
    left -= share;
    if (result.outcome == Outcome::kFound) {
      best.offer(result.packing, "search");
    } else {
      low = target + 1;
      if (result.outcome == Outcome::kImpossible) refuted = low;
    }
  }
  return refuted;
}

/// What is left to try until it is good enough; what is refuted.
int64_t improve(const Problem& problem, const OffsetOptions& options, Best& best) {
  // Where thousands are far from the bound, it is as a rule the bound that is far away: neither skylines nor
  // a search have closed such a gap.
  constexpr int64_t kFar = 20;
  const bool is_large = problem.items.size() > 1000;
  if (is_large && !best.is_within(kFar)) {
    if (!try_best_fit(problem, best)) try_promoting_late(problem, best);
    return 0;
  }
  if (!best.good_enough()) try_promoting(problem, best);
  if (!best.within_a_hundredth() && num_members(problem) > kMaxMembers) try_promoting_by_size(problem, best);
  return best.good_enough() ? 0 : try_search(problem, options, best);
}

}  // namespace

Placement assign_offsets(std::span<const Buffer> buffers, const OffsetOptions& options) {
  const Status legal = check_buffers(buffers);
  PLIMSOLL_CHECK(legal.ok(), legal.error().message());
  const Problem problem = make_problem(buffers);
  if (problem.items.empty())
    return {.offsets = std::vector<int64_t>(buffers.size(), 0), .optimal = true, .method = "empty"};

  Best best(buffers, problem, options.capacity);
  try_greedy(problem, options.first_alone, best);
  Placement placement = best.take(options.first_alone ? 0 : improve(problem, options, best));
  const Status valid = validate(buffers, placement);
  PLIMSOLL_CHECK(valid.ok(), valid.error().message());
  return placement;
}

}  // namespace plimsoll::memory
