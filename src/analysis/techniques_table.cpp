// Techniques and dimensions for people: a line each, the notes below those that have something to say.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/dimensions.h"
#include "analysis/techniques.h"
#include "base/numbers.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "planner/report/budget.h"

namespace plimsoll::analysis {
namespace {

constexpr int kColumns = 80;

const char* heading_of(TechniqueGroup group) {
  switch (group) {
    case TechniqueGroup::kBatch:
      return "Bit-identical: micro-batches";
    case TechniqueGroup::kRecompute:
      return "Bit-identical: recompute in backward";
    case TechniqueGroup::kStep:
      return "Bit-identical: order of the step";
    case TechniqueGroup::kPrecision:
      return "Changes the results: precision of products";
    case TechniqueGroup::kState:
      return "Changes the results: precision of state";
    case TechniqueGroup::kOptimizer:
      return "Changes the results: optimizer";
    case TechniqueGroup::kFrozen:
      return "Changes the results: trained parameters";
    case TechniqueGroup::kData:
      return "Changes the results: data";
    case TechniqueGroup::kIdle:
      break;
  }
  return "Always on, or no effect here";
}

std::string signed_bytes(int64_t bytes) {
  if (bytes == 0) return "0";
  return (bytes > 0 ? "+" : "-") + to_string(Bytes(std::abs(bytes)));
}

/// "+12.5 %" of the run's time.
std::string time_change(double seconds, double base) {
  if (base <= 0) return "";
  const double change = 100 * (seconds / base - 1);
  return std::abs(change) < 0.05 ? "0 %" : fmt::format("{:+.1f} %", change);
}

/// What stands in the heading already is left out.
std::string own_note(const TechniqueRow& row) {
  std::string note = row.note;
  for (const std::string_view said : {"bit-identical results", "changes the results"})
    if (note.starts_with(said)) note.erase(0, std::min(note.size(), said.size() + 2));
  return note;
}

/// What goes for a settled answer has no figures.
bool is_idle(const TechniqueRow& row) { return row.settings.empty(); }

std::string line_of(const TechniqueRow& row, const planner::PlanReport& base) {
  if (is_idle(row)) return fmt::format("  {}\n      {}\n", row.name, row.note);
  std::string line = fmt::format("  {:<36}{:>12}{:>12}{:>10}\n", row.name, to_string(Bytes(row.peak_bytes)),
                                 signed_bytes(row.saved_bytes),
                                 base.has_time() ? time_change(row.seconds, base.seconds_estimated) : "");
  if (const std::string note = own_note(row); !note.empty()) line += "      " + note + "\n";
  return line;
}

}  // namespace

std::string techniques_table(const std::vector<TechniqueRow>& rows, const planner::PlanReport& base) {
  const planner::Bounded bounded = binding_pool(base);
  std::string out =
      fmt::format("Techniques, each planned for this run, over a peak of {}{}\n",
                  to_string(Bytes(planner::bounded_bytes(base, bounded))),
                  base.device_is_process ? "" : fmt::format(" of {}", planner::pool_name(base, bounded)));
  out += fmt::format("  {:<36}{:>12}{:>12}{:>10}\n", "technique", "peak", "saves", "time");
  const TechniqueRow* before = nullptr;
  for (const TechniqueRow& row : rows) {
    if (before == nullptr || before->group != row.group) out += fmt::format("{}\n", heading_of(row.group));
    out += line_of(row, base);
    before = &row;
  }
  return wrapped(out, kColumns);
}

std::string dimensions_table(const std::vector<DimensionRow>& rows, const planner::PlanReport& base) {
  if (rows.empty()) return {};
  std::string out = "Growth of the peak by dimension, planned\n";
  out += fmt::format("  {:<36}{:>12}{:>12}{:>18}\n", "dimension", "peak", "adds", "bytes");
  for (const DimensionRow& row : rows)
    out += fmt::format("  {:<36}{:>12}{:>12}{:>18}\n", row.name, to_string(Bytes(row.peak_bytes)),
                       signed_bytes(row.added_bytes), grouped(row.added_bytes));
  const auto per_share = [](const DimensionRow& row) {
    return static_cast<double>(row.added_bytes) / row.grows;
  };
  const auto most = std::max_element(
      rows.begin(), rows.end(),
      [&](const DimensionRow& a, const DimensionRow& b) { return per_share(a) < per_share(b); });
  const double percent = per_share(*most) / 100;
  out += fmt::format("The {} dominates: one percent more adds {}, {:.2f} % of the peak\n", most->dimension,
                     to_string(Bytes(static_cast<int64_t>(percent))),
                     100 * percent / static_cast<double>(main_peak_bytes(base)));
  return wrapped(out, kColumns);
}

}  // namespace plimsoll::analysis
