// Many short searches instead of a long one, shared by threads, with a result that does not depend on them.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "memory/random.h"
#include "memory/search.h"

namespace plimsoll::memory {

namespace {

constexpr uint64_t kRound = 12;

/// The share of each strategy. A search that succeeds takes little more than one without backtracking, or
/// some unknown multiple of that: rounds get 1, 2, 1, 4, 1, 2, 1, 8, … times the base, so that each multiple
/// has the same part of the whole (the idea of Luby, Sinclair & Zuckerman 1993).
std::vector<int64_t> shares(const Problem& problem, int64_t max_nodes) {
  const int64_t base = 1000 + 6 * static_cast<int64_t>(problem.items.size());
  std::vector<int64_t> result;
  for (int64_t left = max_nodes; left > 0; left -= result.back()) {
    const uint64_t round = result.size() / kRound + 1;
    const int64_t multiple = int64_t{1} << std::countr_zero(round);
    result.push_back(std::min(base * multiple, left));
  }
  return result;
}

/// Strategies under way. Those with a higher number than a successful one are called off; those below it run
/// on, for they would win.
class Race {
 public:
  Race(const Problem& problem, int64_t capacity, int64_t max_nodes)
      : problem_(problem),
        capacity_(capacity),
        shares_(shares(problem, max_nodes)),
        called_off_(shares_.size()) {}

  void work() {
    for (size_t k = next_++; k < shares_.size(); k = next_++) {
      if (called_off_[k]) continue;
      const auto number = static_cast<int64_t>(k);
      SearchResult result = search(problem_, capacity_, shares_[k], strategy_number(number), &called_off_[k]);
      result.strategy = number;
      if (result.outcome != Outcome::kOutOfNodes) finish(std::move(result));
    }
  }

  SearchResult take() { return std::move(best_); }

 private:
  void finish(SearchResult result) {
    const std::lock_guard lock(mutex_);
    if (best_.outcome != Outcome::kOutOfNodes && best_.strategy < result.strategy) return;
    best_ = std::move(result);
    // A proof needs no second one.
    const size_t from = best_.outcome == Outcome::kFound ? static_cast<size_t>(best_.strategy) + 1 : 0;
    for (size_t k = from; k < called_off_.size(); ++k) called_off_[k] = true;
  }

  const Problem& problem_;
  int64_t capacity_;
  std::vector<int64_t> shares_;
  std::vector<std::atomic<bool>> called_off_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  SearchResult best_;
};

}  // namespace

Strategy strategy_number(int64_t number) {
  // By area, by lifetime, by size, each with and without the two refinements; then anything between.
  constexpr std::array<std::array<double, 2>, 3> kPowers{{{1, 1}, {1, 0.01}, {0.01, 1}}};
  Strategy strategy;
  strategy.flush_first = number % 2 == 1;
  strategy.fewest_first = number / 2 % 2 == 0;
  const auto plain = static_cast<size_t>(number / 4);
  if (plain < kPowers.size()) {
    strategy.lifetime_power = kPowers[plain][0];
    strategy.size_power = kPowers[plain][1];
    return strategy;
  }
  strategy.seed = static_cast<uint64_t>(number);
  Random random(strategy.seed);
  strategy.lifetime_power = random.next();
  strategy.size_power = random.next();
  // Little noise more often than much; 2 changes an order by a factor of four in area.
  strategy.noise = 2 * random.next() * random.next();
  return strategy;
}

SearchResult search_all(const Problem& problem, int64_t capacity, int64_t max_nodes, int num_threads) {
  Race race(problem, capacity, max_nodes);
  std::vector<Thread> helpers;
  for (int t = 1; t < num_threads; ++t) {
    auto helper = Thread::start("searching offsets", [&race] { race.work(); });
    if (!helper) break;  // the result depends on no thread's time
    helpers.push_back(std::move(*helper));
  }
  race.work();
  helpers.clear();  // joins
  return race.take();
}

}  // namespace plimsoll::memory
