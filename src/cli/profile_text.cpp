#include "cli/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "train/verdict.h"

namespace plimsoll::cli {
namespace {

using train::ProfileBy;
using train::ProfileRow;

constexpr size_t kRowsShown = 20;

double step_seconds(const train::Profile& profile) {
  double sum = 0;
  for (const train::ProfiledStep& step : profile.steps) sum += step.seconds;
  return sum / static_cast<double>(std::max<size_t>(1, profile.steps.size()));
}

/// Of a long name the end tells more.
std::string cut(const std::string& text, size_t columns) {
  return text.size() <= columns ? text : "~" + text.substr(text.size() - columns + 1);
}

std::string label(const ProfileRow& row, ProfileBy by) {
  switch (by) {
    case ProfileBy::kOp:
      return fmt::format("{:<34}", cut(row.op, 33));
    case ProfileBy::kLayer:
      return fmt::format("{:<34}", row.layer.empty() ? "(no layer)" : cut(row.layer, 33));
    case ProfileBy::kShape:
      return fmt::format("{:<15}{:<19}", cut(row.op, 14), cut(row.shape, 18));
    case ProfileBy::kOpAndLayer:
      break;
  }
  return fmt::format("{:<17}{:<17}", cut(row.op, 16), cut(row.layer, 16));
}

std::string heading(ProfileBy by) {
  return by == ProfileBy::kOp      ? fmt::format("{:<34}", "op")
         : by == ProfileBy::kLayer ? fmt::format("{:<34}", "layer")
         : by == ProfileBy::kShape ? fmt::format("{:<15}{:<19}", "op", "shapes read")
                                   : fmt::format("{:<17}{:<17}", "op", "layer");
}

/// A share, or that nothing is known.
std::string percent(double share) { return share > 0 ? fmt::format("{:.0f}%", 100 * share) : "-"; }

std::string heading(train::FindingKind kind) {
  switch (kind) {
    case train::FindingKind::kLoss:
      return "lost, and could be won back:\n";
    case train::FindingKind::kWork:
      return "the work itself:\n";
    case train::FindingKind::kSmallLoss:
      break;
  }
  return fmt::format("lost, less than {:.0f}% each:\n", 100 * train::kSmallLoss);
}

}  // namespace

std::string profile_table(const train::Profile& profile, ProfileBy by) {
  const double step = step_seconds(profile);
  const bool is_known = profile.rates != "uncalibrated";
  const auto rows = profile_rows(profile, by);
  std::string out = heading(by) + fmt::format("{:>5}{:>9}{:>7}{:>8}{:>7}{:>5}{:>5}\n", "calls", "ms", "share",
                                              "GFLOP/s", "GB/s", "best", "imb");
  for (size_t i = 0; i < std::min(kRowsShown, rows.size()); ++i) {
    const ProfileRow& row = rows[i];
    const double seconds = std::max(1e-12, row.seconds);
    out += label(row, by) + fmt::format("{:>5.4g}{:>9.3f}{:>6.1f}%{:>8.1f}{:>7.1f}{:>5}{:>5}\n", row.calls,
                                        1e3 * seconds, 100 * seconds / step, 1e-9 * row.flops / seconds,
                                        1e-9 * row.bytes / seconds,
                                        is_known ? percent(row.estimated_seconds / seconds) : "-",
                                        row.imbalance() > 0 ? fmt::format("{:.2f}", row.imbalance()) : "-");
  }
  if (rows.size() > kRowsShown) out += fmt::format("and {} rows more\n", rows.size() - kRowsShown);
  if (!is_known) out += "best: what the machine gives of it is known after plimsoll calibrate\n";
  return out;
}

std::string profile_verdict(const train::Profile& profile) {
  const double step = step_seconds(profile);
  std::string out = fmt::format("a step takes {:.2f} ms\n", 1e3 * step);
  std::optional<train::FindingKind> kind;
  for (const train::Finding& f : train::verdict_of(profile)) {
    if (kind != f.kind) out += heading(f.kind);
    kind = f.kind;
    out += fmt::format("{:>10.2f} ms {:>5.1f}%  {}: {}\n", 1e3 * f.seconds, 100 * f.share, f.what, f.hint);
  }
  const train::Efficiency used = train::efficiency_of(profile);
  out += fmt::format(
      "\n{:.1f}% of the threads' time computes, {:.1f}% of a step goes to necessary operations,\n"
      "which at the machine's best rate ({}) would take {:.1f}% of it: the MFU\n",
      100 * used.utilisation, 100 * used.necessary, profile.rates, 100 * used.mfu);
  out += "in the trace:";
  std::string separator = " ";
  for (const auto& [name, seconds] : train::parts_of_steps(profile)) {
    out += fmt::format("{}{} {:.2f}%", separator, name, 100 * seconds / step);
    separator = ", ";
  }
  return out + "\n";
}

Tree verdict_event(const train::Profile& profile) {
  const double step = step_seconds(profile);
  Tree findings = Tree::list(), parts = Tree::map();
  for (const train::Finding& f : train::verdict_of(profile))
    findings.items.push_back(Tree::map({{"what", Tree::of(f.what)},
                                        {"kind", Tree::of(std::string(train::name(f.kind)))},
                                        {"seconds", Tree::of(f.seconds)},
                                        {"share", Tree::of(f.share)},
                                        {"hint", Tree::of(f.hint)}}));
  for (const auto& [name, seconds] : train::parts_of_steps(profile)) parts.set(name, Tree::of(seconds));
  const train::Efficiency used = train::efficiency_of(profile);
  return Tree::map({{"event", Tree::of(std::string("verdict"))},
                    {"step_seconds", Tree::of(step)},
                    {"findings", std::move(findings)},
                    {"utilisation", Tree::of(used.utilisation)},
                    {"necessary", Tree::of(used.necessary)},
                    {"mfu", Tree::of(used.mfu)},
                    {"rates", Tree::of(profile.rates)},
                    {"parts", std::move(parts)}});
}

}  // namespace plimsoll::cli
