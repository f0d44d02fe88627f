#include "cli/profile/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/end_of.h"
#include "profiling/diagnosis.h"

namespace plimsoll::cli {
namespace {

using profiling::ProfileBy;
using profiling::ProfileRow;

constexpr size_t kRowsShown = 20;

double step_seconds(const profiling::Profile& profile) {
  double sum = 0;
  for (const profiling::ProfiledStep& step : profile.steps) sum += step.seconds;
  return sum / static_cast<double>(std::max<size_t>(1, profile.steps.size()));
}

/// The names of a row, with `by` two of them.
struct Names {
  std::string first, second;
};
Names names_of(const ProfileRow& row, ProfileBy by) {
  switch (by) {
    case ProfileBy::kOp:
      return {row.op, ""};
    case ProfileBy::kLayer:
      return {row.layer.empty() ? "(no layer)" : row.layer, ""};
    case ProfileBy::kShape:
      return {row.op, row.shape};
    case ProfileBy::kOpAndLayer:
      break;
  }
  return {row.op, row.layer};
}
Names heading(ProfileBy by) {
  return by == ProfileBy::kOp      ? Names{"op", ""}
         : by == ProfileBy::kLayer ? Names{"layer", ""}
         : by == ProfileBy::kShape ? Names{"op", "shapes read"}
                                   : Names{"op", "layer"};
}

/// The columns of names: what 80 columns leave them, and of a wider terminal what they have use for.
class NameColumns {
 public:
  NameColumns(std::span<const ProfileRow> rows, ProfileBy by, int columns)
      : first_(by == ProfileBy::kOpAndLayer ? 17
               : by == ProfileBy::kShape    ? 15
                                            : kBoth),
        second_(kBoth - first_) {
    size_t left = static_cast<size_t>(std::max(columns, kUsual) - kUsual), first = 0, second = 0;
    for (const ProfileRow& row : rows) {
      const Names names = names_of(row, by);
      first = std::max(first, names.first.size() + 1);
      second = std::max(second, names.second.size() + 1);
    }
    widen(first_, first, left);
    if (second_ > 0) widen(second_, second, left);
  }
  [[nodiscard]] std::string text(const Names& names) const {
    std::string out = fmt::format("{:<{}}", end_of(names.first, first_ - 1), first_);
    return second_ == 0 ? out : out + fmt::format("{:<{}}", end_of(names.second, second_ - 1), second_);
  }

 private:
  static constexpr int kUsual = 80;
  static constexpr size_t kBoth = 34;
  static void widen(size_t& column, size_t wanted, size_t& left) {
    const size_t more = std::min(left, wanted > column ? wanted - column : 0);
    column += more;
    left -= more;
  }
  size_t first_, second_;
};

/// A share, or that nothing is known.
std::string percent(double share) { return share > 0 ? fmt::format("{:.0f}%", 100 * share) : "-"; }

std::string heading(profiling::FindingKind kind) {
  switch (kind) {
    case profiling::FindingKind::kLoss:
      return "lost, and could be avoided:\n";
    case profiling::FindingKind::kWork:
      return "the work itself:\n";
    case profiling::FindingKind::kSmallLoss:
      break;
  }
  return fmt::format("lost, less than {:.0f}% each:\n", 100 * profiling::kSmallLoss);
}

}  // namespace

std::string profile_table(const profiling::Profile& profile, ProfileBy by, int columns) {
  const double step = step_seconds(profile);
  const bool is_known = profile.rates != "uncalibrated" && profile.rates != planner::kUnknownRates;
  const auto rows = profile_rows(profile, by);
  const std::span shown(rows.data(), std::min(kRowsShown, rows.size()));
  const NameColumns names(shown, by, columns);
  std::string out = names.text(heading(by)) + fmt::format("{:>5}{:>9}{:>7}{:>8}{:>7}{:>5}{:>5}\n", "calls",
                                                          "ms", "share", "GFLOP/s", "GB/s", "best", "imb");
  for (const ProfileRow& row : shown) {
    const double seconds = std::max(1e-12, row.seconds);
    out += names.text(names_of(row, by)) +
           fmt::format("{:>5.4g}{:>9.3f}{:>6.1f}%{:>8.1f}{:>7.1f}{:>5}{:>5}\n", row.calls, 1e3 * seconds,
                       100 * seconds / step, 1e-9 * row.flops / seconds, 1e-9 * row.bytes / seconds,
                       is_known ? percent(row.estimated_seconds / seconds) : "-",
                       row.imbalance() > 0 ? fmt::format("{:.2f}", row.imbalance()) : "-");
  }
  if (rows.size() > kRowsShown) out += fmt::format("and {} rows more\n", rows.size() - kRowsShown);
  if (!is_known) out += "best: what the machine gives of it is known after plimsoll calibrate\n";
  return out;
}

std::string profile_verdict(const profiling::Profile& profile) {
  const double step = step_seconds(profile);
  std::string out = fmt::format("a step takes {:.2f} ms\n", 1e3 * step);
  std::optional<profiling::FindingKind> kind;
  for (const profiling::Finding& f : profiling::diagnose(profile)) {
    if (kind != f.kind) out += heading(f.kind);
    kind = f.kind;
    out += fmt::format("{:>10.2f} ms {:>5.1f}%  {}: {}\n", 1e3 * f.seconds, 100 * f.share, f.what, f.hint);
  }
  const profiling::Efficiency used = profiling::efficiency_of(profile);
  out += fmt::format(
      "\n{:.1f}% of the threads' time computes, {:.1f}% of a step goes to necessary operations,\n"
      "which at the machine's best rate ({}) would take {:.1f}% of it: the MFU\n",
      100 * used.utilisation, 100 * used.necessary, profile.rates, 100 * used.mfu);
  out += "in the trace:";
  std::string separator = " ";
  for (const auto& [name, seconds] : profiling::parts_of_steps(profile)) {
    out += fmt::format("{}{} {:.2f}%", separator, name, 100 * seconds / step);
    separator = ", ";
  }
  return out + "\n";
}

io::Tree diagnosis_event(const profiling::Profile& profile) {
  const double step = step_seconds(profile);
  io::Tree findings = io::Tree::list(), parts = io::Tree::map();
  for (const profiling::Finding& f : profiling::diagnose(profile))
    findings.items.push_back(io::Tree::map({{"what", io::Tree::of(f.what)},
                                            {"kind", io::Tree::of(std::string(profiling::name(f.kind)))},
                                            {"seconds", io::Tree::of(f.seconds)},
                                            {"share", io::Tree::of(f.share)},
                                            {"hint", io::Tree::of(f.hint)}}));
  for (const auto& [name, seconds] : profiling::parts_of_steps(profile))
    parts.set(name, io::Tree::of(seconds));
  const profiling::Efficiency used = profiling::efficiency_of(profile);
  return io::Tree::map({{"event", io::Tree::of(std::string("verdict"))},
                        {"step_seconds", io::Tree::of(step)},
                        {"findings", std::move(findings)},
                        {"utilisation", io::Tree::of(used.utilisation)},
                        {"necessary", io::Tree::of(used.necessary)},
                        {"mfu", io::Tree::of(used.mfu)},
                        {"rates", io::Tree::of(profile.rates)},
                        {"parts", std::move(parts)}});
}

}  // namespace plimsoll::cli
