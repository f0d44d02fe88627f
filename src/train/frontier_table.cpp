// The frontier for people.
#include <fmt/format.h>

#include "base/numbers.h"
#include "base/terminal.h"
#include "base/units.h"
#include "train/frontier.h"

namespace plimsoll::train {
namespace {

constexpr int kColumns = 80;

std::string seconds_text(double seconds) { return fmt::format("{:.4g}", seconds); }

std::string tokens_text(const planner::PlanReport& r) {
  return grouped(static_cast<int64_t>(tokens_per_second(r)));
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

/// The first, the last, and of the rest as many as make steps of equal memory.
std::vector<const FrontierPoint*> shown(const std::vector<FrontierPoint>& points) {
  constexpr int64_t kRows = 16;
  std::vector<const FrontierPoint*> list;
  if (points.empty()) return list;
  const int64_t least = points.front().peak_bytes, range = points.back().peak_bytes - least;
  for (const FrontierPoint& point : points) {
    const bool is_end = &point == &points.front() || &point == &points.back();
    const auto row = static_cast<int64_t>(list.size());
    if (is_end || points.size() <= kRows || point.peak_bytes - least >= range / (kRows - 1) * row)
      list.push_back(&point);
  }
  return list;
}

}  // namespace

std::string frontier_table(const Frontier& frontier) {
  std::string out = fmt::format("Step time against memory: {}, planned under {} budgets\n", frontier.model,
                                frontier.num_plans);
  out += fmt::format("  {:>17} {:>10} {:>8} {:>9}  {:<8} {}\n", frontier.budget, "peak", "seconds",
                     "tokens/s", "batch", "recompute");
  bool marked = false;
  const std::vector<const FrontierPoint*> rows = shown(frontier.points);
  for (const FrontierPoint* point : rows) {
    const bool is_chosen = frontier.chosen && is_same(*point, *frontier.chosen);
    marked = marked || is_chosen;
    out += point_line(*point, is_chosen);
  }
  if (frontier.chosen && !marked) out += point_line(*frontier.chosen, true);
  if (rows.size() < frontier.points.size())
    out += fmt::format("  {} of {} points; --json has all\n", rows.size(), frontier.points.size());
  if (frontier.chosen)
    out += fmt::format("> is this run, with its budget of {}\n",
                       to_string(Bytes(frontier.chosen->budget_bytes)));
  else
    out += "This run's own budget is below all of them: it does not fit.\n";
  out += "\nWhat people set by hand, for comparison\n";
  for (const FixedPolicy& policy : frontier.policies)
    out += fmt::format("  {:<34} {:>10} {:>8}\n", policy.name, to_string(Bytes(policy.peak_bytes)),
                       seconds_text(policy.seconds));
  return wrapped(out, kColumns);
}

}  // namespace plimsoll::train
