#include "analysis/frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "planner/report/why.h"

namespace plimsoll::analysis {
namespace {

/// More than any machine has.
constexpr int64_t kUnboundedBytes = int64_t{1} << 50;
/// Budgets from the least to the most useful: evenly, at peaks that the searches came by, and where most is
/// open between two points.
constexpr int64_t kEven = 8;
constexpr size_t kMostProbes = 12, kHalvings = 20, kMostBudgets = 48;

class Search {
 public:
  Search(const strategy::Variants& variants, const strategy::Prepared& base, const PlanProgress& progress)
      : variants_(variants), base_(base), progress_(progress) {
    frontier_.budget = main_budget(base.report);
    frontier_.model = base.report.model;
  }

  Result<Frontier> operator()() {
    plan_policies();
    PLIMSOLL_ASSIGN(const int64_t least, plan_at(1));
    PLIMSOLL_ASSIGN(const int64_t most, plan_at(kUnboundedBytes));
    PLIMSOLL_TRY(plan_at(least));
    PLIMSOLL_TRY(plan_at(most));
    std::vector<int64_t> budgets;
    for (int64_t i = 1; i < kEven; ++i) budgets.push_back(least + (most - least) / kEven * i);
    for (const FixedPolicy& policy : frontier_.policies) budgets.push_back(policy.peak_bytes);
    for (const int64_t budget : budgets)
      if (budget > least && budget < most) PLIMSOLL_TRY(plan_around(budget));
    for (const int64_t peak : promising(least, most)) PLIMSOLL_TRY(plan_around(peak));
    for (size_t i = 0; i < kHalvings; ++i) {
      const int64_t budget = widest_gap();
      if (budget == 0) break;
      PLIMSOLL_TRY(plan_around(budget));
    }
    keep_what_nothing_beats();
    if (base_.report.fits)
      frontier_.chosen = {main_budget_bytes(base_.report), main_peak_bytes(base_.report), base_.report};
    return std::move(frontier_);
  }

 private:
  /// That budget's plan, and what the least budget for it gives.
  Status plan_around(int64_t budget) {
    if (progress_) progress_(std::min(done_++, kMostBudgets), kMostBudgets);
    PLIMSOLL_ASSIGN(const int64_t peak, plan_at(budget));
    PLIMSOLL_TRY(plan_at(peak));
    return Ok{};
  }

  /// A budget between the two points between which most is open, memory times seconds; 0: nothing is.
  int64_t widest_gap() {
    keep_what_nothing_beats();
    double widest = 0;
    int64_t budget = 0;
    for (size_t i = 1; i < frontier_.points.size(); ++i) {
      const FrontierPoint &less = frontier_.points[i - 1], &more = frontier_.points[i];
      // Below a budget that gave the lower one's plan nothing is open.
      int64_t from = less.peak_bytes;
      for (auto tried = peaks_.upper_bound(from); tried != peaks_.end() && tried->first < more.peak_bytes;
           ++tried)
        from = tried->first;
      const int64_t middle = from + (more.peak_bytes - from) / 2;
      const double gap = static_cast<double>(more.peak_bytes - from) *
                         (less.report.seconds_estimated - more.report.seconds_estimated);
      if (middle > from && gap > widest) {
        widest = gap;
        budget = middle;
      }
    }
    return budget;
  }

  /// The peak of what that budget gives; it is a point where it fits.
  Result<int64_t> plan_at(int64_t budget) {
    if (const auto known = peaks_.find(budget); known != peaks_.end()) return known->second;
    const strategy::SettingTexts settings = {{frontier_.budget, std::to_string(budget)}};
    PLIMSOLL_ASSIGN(strategy::Variant variant,
                    variants_.look(settings, /*finds_least=*/true));  // as by itself
    ++frontier_.num_plans;
    ways_.insert(ways_.end(), variant.considered.begin(), variant.considered.end());
    const int64_t peak = main_peak_bytes(variant.report);
    peaks_.emplace(budget, peak);
    if (variant.report.fits) frontier_.points.push_back({budget, peak, std::move(variant.report)});
    return peak;
  }

  /// Peaks of ways that the searches came by and that none of them beats; the largest gaps first, as many as
  /// are worth a plan.
  [[nodiscard]] std::vector<int64_t> promising(int64_t least, int64_t most) const {
    std::vector<std::pair<int64_t, double>> strategies;
    if (base_.report.device_is_process)
      for (const planner::Alternative& a : ways_)
        if (a.peak_bytes > least && a.peak_bytes < most) strategies.emplace_back(a.peak_bytes, a.seconds);
    std::ranges::sort(strategies);
    std::vector<int64_t> peaks;
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto& [peak, seconds] : strategies) {
      if (seconds >= fastest) continue;
      fastest = seconds;
      if (!peaks_.contains(peak)) peaks.push_back(peak);
    }
    if (peaks.size() <= kMostProbes) return peaks;
    std::vector<int64_t> spread;
    for (size_t i = 0; i < kMostProbes; ++i) spread.push_back(peaks[i * peaks.size() / kMostProbes]);
    return spread;
  }

  void keep_what_nothing_beats() {
    std::ranges::sort(frontier_.points, {}, &FrontierPoint::budget_bytes);
    std::vector<FrontierPoint> kept;
    for (FrontierPoint& point : frontier_.points) {
      if (!kept.empty() && point.report.seconds_estimated >= kept.back().report.seconds_estimated) continue;
      while (!kept.empty() && kept.back().peak_bytes >= point.peak_bytes) kept.pop_back();
      kept.push_back(std::move(point));
    }
    frontier_.points = std::move(kept);
  }

  /// With memory without end, so that they stay what they are.
  void plan_policies() {
    const settings::TrainingSettings& training = variants_.config().training;
    const int64_t all = training.global_batch_size;
    std::vector<settings::BatchSplit> splits = {{all, 1}};
    if (all > 1) splits.push_back({1, all});
    const auto fixed = settings::fixed_batch_split(training);
    if (fixed || base_.model->couples_micro_batch()) splits = {fixed.value_or(base_.split)};
    for (const settings::BatchSplit& split : splits)
      for (const char* recompute : {"none", "{every: 2}", "segments", "full"}) {
        strategy::SettingTexts settings = {
            {"memory.recompute", recompute},
            {"training.micro_batch_size", std::to_string(split.micro_batch_size)},
            {"training.gradient_accumulation_steps", std::to_string(split.grad_accum_steps)},
            {frontier_.budget, std::to_string(kUnboundedBytes)}};
        const auto planned = variants_.look(settings, /*finds_least=*/false);
        if (!planned) continue;  // what contradicts the run is no policy of it
        const std::string name = recompute[0] == '{' ? "every 2" : recompute;
        frontier_.policies.push_back(
            {fmt::format("{} x {}, recompute {}", split.micro_batch_size, split.grad_accum_steps, name),
             std::move(settings), main_peak_bytes(planned->report), planned->report.seconds_estimated});
      }
  }

  const strategy::Variants& variants_;
  const strategy::Prepared& base_;
  const PlanProgress& progress_;
  Frontier frontier_;
  std::map<int64_t, int64_t> peaks_;  // by budget
  std::vector<planner::Alternative> ways_;
  size_t done_ = 0;
};

io::Tree point_event(const FrontierPoint& point) {
  return io::Tree::map({{"budget_bytes", io::Tree::of(point.budget_bytes)},
                        {"peak_bytes", io::Tree::of(point.peak_bytes)},
                        {"seconds", io::Tree::of(point.report.seconds_estimated)},
                        {point.report.speed_key(), io::Tree::of(point.report.units_per_second())},
                        {"choices", planner::choices_event(point.report)}});
}

}  // namespace

Result<Frontier> plan_frontier(const strategy::Variants& variants, const strategy::Prepared& base,
                               const PlanProgress& progress) {
  return Search(variants, base, progress)();
}

io::Tree frontier_event(const Frontier& frontier) {
  std::vector<io::Tree> points, policies;
  for (const FrontierPoint& point : frontier.points) points.push_back(point_event(point));
  for (const FixedPolicy& policy : frontier.policies) {
    io::Tree settings = io::Tree::map();
    for (const auto& [path, value] : policy.settings) settings.set(path, io::Tree::of(value));
    policies.push_back(io::Tree::map({{"name", io::Tree::of(policy.name)},
                                      {"settings", std::move(settings)},
                                      {"peak_bytes", io::Tree::of(policy.peak_bytes)},
                                      {"seconds", io::Tree::of(policy.seconds)}}));
  }
  return io::Tree::map({{"event", io::Tree::of(std::string("frontier"))},
                        {"budget", io::Tree::of(frontier.budget)},
                        {"points", io::Tree::list(std::move(points))},
                        {"chosen", frontier.chosen ? point_event(*frontier.chosen) : io::Tree{}},
                        {"policies", io::Tree::list(std::move(policies))}});
}

}  // namespace plimsoll::analysis
