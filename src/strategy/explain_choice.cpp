#include "strategy/explain_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/report/budget.h"
#include "planner/report/why.h"
#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {
namespace {

using planner::Alternative;

/// The budget that leaves least.
std::string tightest(const planner::PlanReport& r) {
  const auto left = [&](const planner::Budget& b) {
    const bool is_idle_disk = b.bounded == planner::Bounded::kDisk && r.disk_bytes == 0;
    return is_idle_disk ? std::numeric_limits<int64_t>::max() : b.bytes - bounded_bytes(r, b.bounded);
  };
  return std::ranges::min_element(r.budgets, {}, left)->setting;
}

template <typename Keep>
std::optional<Alternative> fastest(const std::vector<Alternative>& list, Keep keep) {
  std::optional<Alternative> best;
  for (const Alternative& a : list)
    if (keep(a) && (!best || a.seconds < best->seconds)) best = a;
  return best;
}

}  // namespace

void add_why(const settings::RunConfig& config, const runtime::Target& target, const PrepareOptions& options,
             PlanCache& cache, Prepared& prepared) {
  constexpr int64_t kMoreBytes = int64_t{100} << 20;
  planner::PlanReport& report = prepared.report;
  const bool chooses_split =
      !settings::fixed_batch_split(config.training) && !prepared.model->couples_micro_batch();
  const bool chooses = chooses_recompute(config, options) || chooses_split;
  if (options.purpose != Purpose::kTrain || !report.fits || report.budgets.empty() || !chooses) return;
  const Alternative chosen = planner::alternative_of(report);
  planner::Why why{.budget = tightest(report)};
  why.faster = fastest(prepared.considered, [&](const Alternative& a) {
    return a.excess_bytes > 0 && a.seconds < chosen.seconds;
  });
  why.runner_up = fastest(prepared.considered,
                          [&](const Alternative& a) { return a.excess_bytes <= 0 && !(a == chosen); });
  if (why.faster) {
    PrepareOptions more = options;
    more.dump_ir.clear();
    more.more_bytes += kMoreBytes;
    more.request = PlanRequest::kReport;
    const auto with_more = prepare(config, target, more, cache);
    why.more_bytes = kMoreBytes;
    if (with_more && with_more->report.fits && with_more->report.seconds_estimated < chosen.seconds)
      why.with_more = planner::alternative_of(with_more->report);
  }
  report.why = std::move(why);
}

}  // namespace plimsoll::strategy
