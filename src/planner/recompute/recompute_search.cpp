#include "planner/recompute/recompute_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plimsoll::planner {
namespace {

/// A choice for the blocks before some block.
struct Point {
  int64_t saved = 0;
  double seconds = 0;
  size_t from = 0;    ///< the block at which the last step began
  size_t parent = 0;  ///< the point there
  size_t option = 0;  ///< 0: kept; k: the block's option k - 1; beyond them: a run
};

class Search {
 public:
  Search(const RecomputeChain& chain, int64_t arena_bytes)
      : chain_(in_units(chain)),
        arena_(arena_bytes),
        at_(chain.blocks.size() + 1),
        enough_(chain.blocks.size() + 1, chain_.needed_bytes - arena_bytes) {
    each_saving(chain_, [this](int64_t bytes) { unit_ = std::gcd(unit_, bytes); });
    unit_ = std::max<int64_t>(1, unit_);
    for (size_t i = chain_.blocks.size(); i-- > 0;)
      enough_[i] = std::max(enough_[i + 1], chain_.blocks[i].needed_bytes - arena_bytes);
  }

  std::optional<RecomputeChoice> operator()() {
    const size_t n = chain_.blocks.size();
    at_[0].push_back({});
    for (size_t i = 0; i < n; ++i) {
      prune(i, chain_.blocks[i].needed_bytes - arena_);
      step_over_block(i);
      step_over_runs(i);
    }
    prune(n, 0);
    return best_end();
  }

  /// Whether there is a choice at all: the same walk with the most that can be saved before each block, which
  /// is as good as anything that saves less.
  static bool is_feasible(const RecomputeChain& in_units, int64_t arena) {
    const std::vector<RecomputeBlock>& blocks = in_units.blocks;
    constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
    std::vector<int64_t> most(blocks.size() + 1, kNone);
    most[0] = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      int64_t least = blocks[i].needed_bytes - arena;
      if (most[i] == kNone || most[i] < least) continue;
      int64_t saved = 0;
      for (const RecomputeOption& option : blocks[i].options) saved = std::max(saved, option.saved_bytes);
      most[i + 1] = std::max(most[i + 1], most[i] + saved);
      saved = blocks[i].saved_bytes;
      for (size_t j = i + 1; j < blocks.size(); ++j) {
        saved += blocks[j].saved_bytes + blocks[j].input_bytes;
        least = std::max(least, blocks[j].needed_bytes - arena);
        if (most[i] < least) break;
        most[j + 1] = std::max(most[j + 1], most[i] + saved);
      }
    }
    int64_t chunk = 0;
    for (const ChunkOption& option : in_units.chunks) chunk = std::max(chunk, option.saved_bytes);
    return most.back() != kNone && most.back() >= in_units.needed_bytes - chunk - arena;
  }

  /// What is saved, rounded down to whole units.
  static RecomputeChain in_units(RecomputeChain chain) {
    const auto n = static_cast<int64_t>(chain.blocks.size());
    const int64_t most_units = std::max(kLeastUnits, (int64_t{1} << 20) / std::max<int64_t>(1, n * n));
    int64_t all = 0, divisor = 0;
    for (const RecomputeBlock& block : chain.blocks) all += block.saved_bytes + block.input_bytes;
    each_saving(chain, [&](int64_t bytes) { divisor = std::gcd(divisor, bytes); });
    const int64_t unit = std::max(divisor, all / most_units);
    if (unit > divisor) each_saving(chain, [&](int64_t& bytes) { bytes -= bytes % unit; });
    return chain;
  }

 private:
  template <typename Chain, typename Visit>
  static void each_saving(Chain& chain, const Visit& visit) {
    for (auto& block : chain.blocks) {
      visit(block.saved_bytes);
      visit(block.input_bytes);
      for (auto& option : block.options) visit(option.saved_bytes);
    }
  }
  /// What saves enough before block i, and of that what nothing cheaper saves as much as, or all that will be
  /// needed; sorted by both.
  void prune(size_t i, int64_t least_saved) {
    std::vector<Point>& points = at_[i];
    std::erase_if(points, [&](const Point& p) { return p.saved < least_saved; });
    std::vector<Point> kept;
    for (const Point& p : sorted(points)) {
      if (!kept.empty() && p.seconds >= kept.back().seconds) continue;
      if (!kept.empty() && p.saved >= enough_[i]) kept.pop_back();
      kept.push_back(p);
    }
    points = std::move(kept);
  }

  /// By what they save, the most first, and of equals the cheapest first; of those that save the same one
  /// may do. As a rule there are many more points than different savings, which are whole units.
  std::vector<Point> sorted(const std::vector<Point>& points) const {
    int64_t units = 0, least = 0;
    for (const Point& p : points)
      units = std::max(units, p.saved / unit_ + 1), least = std::min(least, p.saved);
    if (units > std::ssize(points) || least < 0) {
      std::vector<Point> all = points;
      std::ranges::stable_sort(all, [](const Point& a, const Point& b) {
        return std::pair(-a.saved, a.seconds) < std::pair(-b.saved, b.seconds);
      });
      return all;
    }
    std::vector<const Point*> cheapest(static_cast<size_t>(units), nullptr);  // by units saved
    for (const Point& p : points) {
      const Point*& known = cheapest[static_cast<size_t>(p.saved / unit_)];
      if (known == nullptr || p.seconds < known->seconds) known = &p;
    }
    std::vector<Point> found;
    for (size_t u = cheapest.size(); u-- > 0;)
      if (cheapest[u] != nullptr) found.push_back(*cheapest[u]);
    return found;
  }

  void step_over_block(size_t i) {
    const RecomputeBlock& block = chain_.blocks[i];
    for (size_t p = 0; p < at_[i].size(); ++p) {
      const Point point = at_[i][p];
      at_[i + 1].push_back({point.saved, point.seconds, i, p, 0});
      for (size_t k = 0; k < block.options.size(); ++k)
        at_[i + 1].push_back({point.saved + block.options[k].saved_bytes,
                              point.seconds + block.options[k].seconds, i, p, k + 1});
    }
  }

  /// Runs that begin with block i: what they save counts behind them, for as long as they run themselves what
  /// was saved before must do. None is longer than what saves all that will be needed.
  void step_over_runs(size_t i) {
    int64_t saved = chain_.blocks[i].saved_bytes;
    double seconds = chain_.blocks[i].seconds;
    int64_t least = chain_.blocks[i].needed_bytes - arena_;
    for (size_t j = i + 1; j < chain_.blocks.size(); ++j) {
      const RecomputeBlock& block = chain_.blocks[j];
      const int64_t shorter = j > i + 1 ? saved : std::numeric_limits<int64_t>::min() / 2;
      saved += block.saved_bytes + block.input_bytes;
      seconds += block.seconds + chain_.blocks[j - 1].tail_seconds;
      least = std::max(least, block.needed_bytes - arena_);
      size_t p = 0;
      while (p < at_[i].size() && at_[i][p].saved + shorter >= enough_[j]) ++p;
      for (; p < at_[i].size() && at_[i][p].saved >= least; ++p)
        at_[j + 1].push_back({at_[i][p].saved + saved, at_[i][p].seconds + seconds, i, p, kRun});
      if (at_[j + 1].size() > static_cast<size_t>(8 * kLeastUnits)) prune(j + 1, 0);
    }
  }

  /// What costs least together with the chunks of the loss that it needs.
  [[nodiscard]] std::optional<RecomputeChoice> best_end() const {
    const std::vector<Point>& ends = at_.back();
    std::optional<RecomputeChoice> best;
    const auto consider = [&](const ChunkOption& chunk) {
      const int64_t least = chain_.needed_bytes - chunk.saved_bytes - arena_;
      const Point* cheapest = nullptr;
      for (const Point& p : ends)
        if (p.saved >= least && (cheapest == nullptr || p.seconds < cheapest->seconds)) cheapest = &p;
      if (cheapest == nullptr || (best && cheapest->seconds + chunk.seconds >= best->seconds)) return;
      best = choice(*cheapest);
      best->saved_before.back() += chunk.saved_bytes;
      best->seconds += chunk.seconds;
      best->chunk_tokens = chunk.tokens;
    };
    consider({});
    for (const ChunkOption& chunk : chain_.chunks) consider(chunk);
    return best;
  }

  [[nodiscard]] RecomputeChoice choice(Point point) const {
    RecomputeChoice result{{}, point.seconds};
    result.saved_before.assign(chain_.blocks.size() + 1, point.saved);
    std::vector<std::vector<std::string>> steps;
    for (size_t end = chain_.blocks.size(); end > 0;) {
      const RecomputeBlock& first = chain_.blocks[point.from];
      if (point.option == kRun)
        steps.push_back({first.name + ".." + chain_.blocks[end - 1].name});
      else if (point.option > 0)
        steps.push_back(first.options[point.option - 1].layers);
      const size_t before = end;
      end = point.from;
      point = at_[end][point.parent];
      std::fill(result.saved_before.begin() + static_cast<std::ptrdiff_t>(end),
                result.saved_before.begin() + static_cast<std::ptrdiff_t>(before), point.saved);
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
      result.layers.insert(result.layers.end(), step->begin(), step->end());
    return result;
  }

  static constexpr size_t kRun = SIZE_MAX;
  static constexpr int64_t kLeastUnits = 4096;
  const RecomputeChain chain_;
  int64_t arena_;
  int64_t unit_ = 0;                    // divides all that can be saved
  std::vector<std::vector<Point>> at_;  // by block: choices for those before it
  std::vector<int64_t> enough_;         // by block: no more need be saved, there and behind
};

}  // namespace

std::optional<RecomputeChoice> cheapest_recompute(const RecomputeChain& chain, int64_t arena_bytes) {
  return Search(chain, arena_bytes)();
}

RecomputeChain corrected(RecomputeChain chain, const RecomputeChoice& choice, const AliveByBlock& alive) {
  const size_t n = chain.blocks.size();
  if (choice.saved_before.size() != n + 1 || alive.blocks.size() != n) return chain;
  for (size_t i = 0; i < n; ++i) chain.blocks[i].needed_bytes = alive.blocks[i] + choice.saved_before[i];
  chain.needed_bytes = alive.at_end + choice.saved_before[n];
  return chain;
}

int64_t least_arena(const RecomputeChain& bytes) {
  const RecomputeChain chain = Search::in_units(bytes);
  int64_t low = 0, high = chain.needed_bytes;  // low does not do, high does
  for (const RecomputeBlock& block : chain.blocks) high = std::max(high, block.needed_bytes);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (Search::is_feasible(chain, middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace plimsoll::planner
