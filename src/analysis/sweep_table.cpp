// Sweeps for people.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/sweep.h"
#include "base/end_of.h"
#include "base/numbers.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "planner/report/report_parts.h"

namespace plimsoll::analysis {
namespace {

constexpr int kSweepColumns = 80;
constexpr size_t kMostOfValue = 24;
constexpr const char* kRanks = "distributed.ranks";

std::string last_word(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// Whether rows differ in ranks, or have several.
bool has_ranks(const Sweep& sweep) {
  return std::ranges::any_of(sweep.rows,
                             [](const SweepRow& row) { return row.report && row.report->ranks > 1; });
}

/// Of each of several ranks what all together do, and what it waits for the others.
std::string rank_columns(const planner::PlanReport& r) {
  if (!r.fits || !r.has_time()) return {};
  return fmt::format(" {:>9} {:>9.3g}",
                     grouped(static_cast<int64_t>(r.units_per_second() / static_cast<double>(r.ranks))),
                     planner::exposed_seconds(r));
}

std::string line_of(const SweepRow& row, const std::vector<size_t>& widths, bool has_ranks) {
  std::string line;
  for (size_t a = 0; a < widths.size(); ++a)
    line += fmt::format("  {:>{}}", end_of(row.values[a], kMostOfValue), widths[a]);
  if (!row.report) return line + "  " + row.note + "\n";
  const auto bytes = [](int64_t n) { return to_string(Bytes(n)); };
  const planner::PlanReport& r = *row.report;
  line += fmt::format("  {:>10} {:>10}  {:<4} {:>9} {:>10}{}\n", bytes(row.least_bytes),
                      r.fits ? bytes(row.peak_bytes) : "", r.fits ? "yes" : "NO",
                      r.fits && r.has_time() ? fmt::format("{:.4g}", r.seconds_estimated) : "",
                      r.fits && r.has_time() ? grouped(static_cast<int64_t>(r.units_per_second())) : "",
                      has_ranks ? rank_columns(r) : "");
  return row.note.empty() ? line : line + "      " + row.note + "\n";
}

std::string fewest_ranks(const Sweep& sweep) {
  const SweepRow* fewest = nullptr;
  for (const SweepRow& row : sweep.rows)
    if (row.report && row.report->fits && (fewest == nullptr || row.report->ranks < fewest->report->ranks))
      fewest = &row;
  return fewest == nullptr ? "None of these fits.\n"
                           : fmt::format("The fewest ranks of these that fit: {}\n", fewest->report->ranks);
}

std::string smallest_budget(const Sweep& sweep) {
  const SweepRow* smallest = nullptr;
  for (const SweepRow& row : sweep.rows)
    if (row.report && row.report->fits && (smallest == nullptr || row.budget_bytes < smallest->budget_bytes))
      smallest = &row;
  return smallest == nullptr ? "None of these fits.\n"
                             : fmt::format("The smallest {} of these that fits: {}\n", sweep.axes[0].path,
                                           smallest->values[0]);
}

/// "The longest sequence that fits: 5312".
std::string answer(const Sweep& sweep) {
  const SweepRow* largest = largest_row(sweep);
  const SweepAxis& axis = sweep.axes[0];
  if (sweep.axes.size() != 1) return {};
  if (axis.setting == kRanks) return fewest_ranks(sweep);
  if (axis.setting.starts_with("memory.") && axis.setting.ends_with("budget")) return smallest_budget(sweep);
  const std::string what = axis.setting == "data.sequence_length"         ? "longest sequence"
                           : axis.setting == "training.global_batch_size" ? "largest batch"
                           : axis.setting == "training.micro_batch_size"  ? "largest micro-batch"
                           : axis.setting.starts_with("model.")           ? "largest model"
                                                                          : "largest " + axis.path;
  const std::string of = axis.finds_largest ? "" : " of these";
  if (largest != nullptr) return fmt::format("The {}{} that fits: {}\n", what, of, largest->values[0]);
  const auto fits = [](const SweepRow& row) { return row.report && row.report->fits; };
  return std::ranges::any_of(sweep.rows, fits) ? "" : "None of these fits.\n";
}

/// Of the rows that are planned: "4 GiB"; where they have budgets of their own, "2 GiB to 8 GiB (by row)".
template <typename BytesOf>
std::string budgets_of(const Sweep& sweep, BytesOf&& bytes_of) {
  std::vector<int64_t> all;
  for (const SweepRow& row : sweep.rows)
    if (row.report) all.push_back(bytes_of(row));
  const auto [least, most] = std::ranges::minmax(all);
  const std::string lower = to_string(Bytes(least)), upper = to_string(Bytes(most));
  return lower == upper ? lower : fmt::format("{} to {} (by row)", lower, upper);
}

/// What bounds the rows: beside a card each pool.
std::string head_of(const Sweep& sweep) {
  const std::string budget = budgets_of(sweep, [](const SweepRow& row) { return row.budget_bytes; });
  const auto is_beside_host = [](const SweepRow& row) {
    return !row.report || (!row.report->device_in_process && row.report->host_budget() != nullptr);
  };
  if (!std::ranges::all_of(sweep.rows, is_beside_host))
    return fmt::format("Planned within {} = {}\n", sweep.budget, budget);
  return fmt::format("Planned within the card's {} and the host's {}\n", budget,
                     budgets_of(sweep, [](const SweepRow& row) { return row.report->host_budget()->bytes; }));
}

}  // namespace

std::string sweep_table(const Sweep& sweep) {
  std::vector<size_t> widths;
  std::string out, head;
  for (size_t a = 0; a < sweep.axes.size(); ++a) {
    const std::string title = last_word(sweep.axes[a].path);
    size_t width = title.size();
    for (const SweepRow& row : sweep.rows)
      width = std::max(width, std::min(row.values[a].size(), kMostOfValue));
    widths.push_back(width);
    head += fmt::format("  {:>{}}", title, width);
  }
  const auto planned =
      std::ranges::find_if(sweep.rows, [](const SweepRow& row) { return row.report.has_value(); });
  if (planned != sweep.rows.end()) out += head_of(sweep);
  const std::string unit = planned != sweep.rows.end() ? planned->report->unit : planner::PlanReport{}.unit;
  const bool ranks = has_ranks(sweep);
  out += head + fmt::format("  {:>10} {:>10}  {:<4} {:>9} {:>10}{}\n", "least", "peak", "fits", "seconds",
                            unit + "/s", ranks ? fmt::format(" {:>9} {:>9}", "each rank", "exposed") : "");
  for (const SweepRow& row : sweep.rows) out += line_of(row, widths, ranks);
  if (ranks)
    out += fmt::format(
        "Each rank: {}/s of one rank. Exposed: seconds of a step in which a rank waits for "
        "the network. Estimates, not a prediction.\n",
        unit);
  return wrapped(out + answer(sweep), kSweepColumns);
}

}  // namespace plimsoll::analysis
