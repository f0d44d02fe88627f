// The frontier for people.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/frontier.h"
#include "base/numbers.h"
#include "base/text_layout.h"
#include "base/units.h"

namespace plimsoll::analysis {
namespace {

constexpr int kFrontierColumns = 80;

std::string seconds_text(double seconds) { return fmt::format("{:.4g}", seconds); }

std::string tokens_text(const planner::PlanReport& r) {
  return grouped(static_cast<int64_t>(r.units_per_second()));
}

std::string point_line(const FrontierPoint& point, bool is_chosen) {
  const planner::PlanReport& r = point.report;
  std::string how = r.recompute;
  if (r.optimizer_in_backward) how += ", update in backward";
  return fmt::format("{} {:>17} {:>10} {:>8} {:>9}  {:<8} {}\n", is_chosen ? '>' : ' ',
                     grouped(point.budget_bytes), to_string(Bytes(point.peak_bytes)),
                     seconds_text(r.seconds_estimated), tokens_text(r),
                     fmt::format("{} x {}", r.micro_batch_size, r.grad_accum_steps), how);
}

bool is_same(const FrontierPoint& a, const FrontierPoint& b) {
  return a.peak_bytes == b.peak_bytes && a.report.seconds_estimated == b.report.seconds_estimated;
}

/// The first, the last and the run's own, and of the rest those that stand apart in memory or time.
std::vector<const FrontierPoint*> shown(const Frontier& frontier) {
  constexpr double kRows = 16;
  std::vector<const FrontierPoint*> list;
  if (frontier.points.empty()) return list;
  const FrontierPoint &least = frontier.points.front(), &most = frontier.points.back();
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const auto way_along = [&](const FrontierPoint& p) {
    return share(static_cast<double>(p.peak_bytes - least.peak_bytes),
                 static_cast<double>(most.peak_bytes - least.peak_bytes)) +
           share(least.report.seconds_estimated - p.report.seconds_estimated,
                 least.report.seconds_estimated - most.report.seconds_estimated);
  };
  double next = 0;
  for (const FrontierPoint& point : frontier.points) {
    const bool is_chosen = frontier.chosen && is_same(point, *frontier.chosen);
    if (way_along(point) < next && &point != &most && !is_chosen) continue;
    list.push_back(&point);
    next = std::max(next, way_along(point) + 2 / kRows);
  }
  return list;
}

}  // namespace

std::string frontier_table(const Frontier& frontier) {
  const planner::PlanReport report =
      frontier.points.empty() ? planner::PlanReport{} : frontier.points.front().report;
  const std::string speed = report.unit + "/s";
  std::string out = fmt::format("Step time against memory: {}, planned with {} budgets\n", frontier.model,
                                frontier.num_plans);
  out += fmt::format("  {:>17} {:>10} {:>8} {:>9}  {:<8} {}\n", frontier.budget, "peak", "seconds", speed,
                     "batch", "recompute");
  std::vector<const FrontierPoint*> rows = shown(frontier);
  const size_t num_points = rows.size();
  const auto is_chosen = [&](const FrontierPoint* point) {
    return frontier.chosen && is_same(*point, *frontier.chosen);
  };
  if (frontier.chosen && std::ranges::none_of(rows, is_chosen))  // where its peak has its place
    rows.insert(std::ranges::upper_bound(rows, frontier.chosen->peak_bytes, {},
                                         [](const FrontierPoint* p) { return p->peak_bytes; }),
                &*frontier.chosen);
  for (const FrontierPoint* point : rows) out += point_line(*point, is_chosen(point));
  if (num_points < frontier.points.size())
    out += fmt::format("  {} of {} points; --json has all\n", num_points, frontier.points.size());
  if (frontier.chosen)
    out += fmt::format("> is this run, with its budget of {}\n",
                       to_string(Bytes(frontier.chosen->budget_bytes)));
  else
    out += "This run's own budget is below all of them: it does not fit.\n";
  out += "\nFor comparison, settings by hand (micro-batch x accumulation steps)\n";
  for (const FixedPolicy& policy : frontier.policies)
    out += fmt::format("  {:<34} {:>10} {:>8}\n", policy.name, to_string(Bytes(policy.peak_bytes)),
                       seconds_text(policy.seconds));
  return wrapped(out, kFrontierColumns);
}

}  // namespace plimsoll::analysis
