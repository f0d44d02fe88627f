// One list of rows, from which the event and the tables are made.
#include "planner/report/report_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace plimsoll::planner {
namespace {

/// A figure of both plans; nothing where a plan has no such phase.
struct Row {
  std::string_view section;
  std::string name;
  std::optional<double> a, b;
  bool whole = true;  ///< an exact count; otherwise an estimate

  [[nodiscard]] std::optional<double> difference() const {
    return a && b ? std::optional(*b - *a) : std::nullopt;
  }
  [[nodiscard]] std::optional<double> percent() const {
    return a && b && *a != 0 ? std::optional(100 * (*b - *a) / *a) : std::nullopt;
  }
};

/// The figures of each plan by name, in the order of a, then b's own.
template <typename Entries, typename Name, typename Bytes>
void pair_up(std::string_view section, const Entries& a, const Entries& b, Name name, Bytes bytes,
             std::vector<Row>& rows) {
  const auto first = static_cast<std::ptrdiff_t>(rows.size());
  for (const auto& entry : a)
    rows.push_back({section, name(entry), static_cast<double>(bytes(entry, true)), {}});
  for (const auto& entry : b) {
    auto row =
        std::find_if(rows.begin() + first, rows.end(), [&](const Row& r) { return r.name == name(entry); });
    if (row == rows.end()) row = rows.insert(row, {section, name(entry), {}, {}});
    row->b = static_cast<double>(bytes(entry, false));
  }
}

std::vector<Row> figures(const PlanDiff& d) {
  std::vector<Row> rows;
  pair_up(
      "classes", d.a.classes, d.b.classes, [](const auto& c) { return c.first; },
      [](const auto& c, bool) { return c.second; }, rows);
  const auto add = [&](std::string_view section, const char* name, auto value) {
    rows.push_back({section, name, static_cast<double>(value(d.a)), static_cast<double>(value(d.b))});
  };
  using R = const PlanReport&;
  add("peaks", "persistent", [](R r) { return r.persistent_bytes; });
  add("peaks", "arena", [](R r) { return r.arena_bytes; });
  add("peaks", "overhead", [](R r) { return r.overhead_bytes; });
  add("peaks", "device peak", [](R r) { return r.device_peak_bytes(); });
  add("peaks", "host peak", [](R r) { return r.host_peak_bytes(); });
  add("peaks", "process peak", [](R r) { return r.process_peak_bytes(); });
  add("peaks", "budget", [](R r) { return r.budget_bytes; });
  pair_up(
      "phases", d.a.phases, d.b.phases, [](const PhaseBytes& p) { return p.name; },
      [&](const PhaseBytes& p, bool of_a) {
        return p.persistent_bytes + p.arena_bytes + p.host_bytes + (of_a ? d.a : d.b).overhead_bytes;
      },
      rows);
  add("step", "tokens", [](R r) { return r.units; });
  add("step", "flops", [](R r) { return r.flops; });
  add("step", "recompute_flops", [](R r) { return r.recompute_flops; });
  add("step", "seconds_estimated", [](R r) { return r.seconds_estimated; });
  rows.back().whole = false;
  return rows;
}

/// Choices as words.
std::vector<SettingDifference> choices(const PlanDiff& d) {
  std::vector<SettingDifference> rows;
  const auto add = [&](const char* name, auto value) { rows.push_back({name, value(d.a), value(d.b)}); };
  using R = const PlanReport&;
  add("micro_batch_size", [](R r) { return std::to_string(r.micro_batch_size); });
  add("grad_accum_steps", [](R r) { return std::to_string(r.grad_accum_steps); });
  add("recompute", [](R r) { return r.recompute; });
  add("gathered_layers", [](R r) { return std::to_string(r.gathered_layers); });
  add("optimizer_in_backward", [](R r) { return std::string(r.optimizer_in_backward ? "on" : "off"); });
  add("offload", [](R r) { return r.offload; });
  add("update_on_host", [](R r) { return std::string(r.update_on_host ? "on" : "off"); });
  add("threads", [](R r) { return std::to_string(r.threads); });
  add("fits", [](R r) { return std::string(r.fits ? "yes" : "no"); });
  return rows;
}

/// 12,345,678 with a sign where asked; exact up to 2^53, beyond which no count of bytes goes.
std::string grouped_change(double value, bool sign) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), 1, ',');
  return fmt::format("{}{}", value < 0 ? "-" : sign ? "+" : "", digits);
}

std::string figure(const Row& row, std::optional<double> value, bool sign = false) {
  if (!value) return "-";
  if (row.whole && std::abs(*value) < 1e15) return grouped_change(*value, sign);
  return sign ? fmt::format("{:+.4g}", *value) : fmt::format("{:.4g}", *value);
}

std::string line(const Row& row) {
  const auto difference = row.difference(), percent = row.percent();
  std::string share;
  if (percent && *percent != 0)
    share = std::abs(*percent) < 0.05 ? "< 0.1 %" : fmt::format("{:+.1f} %", *percent);
  return fmt::format("  {:<24}{:>20}{:>20}{:>20}{:>12}", row.name, figure(row, row.a), figure(row, row.b),
                     difference == 0.0 ? "=" : figure(row, difference, true), share);
}

std::string heading(std::string_view title) {
  return fmt::format("\n{:<26}{:>20}{:>20}{:>20}{:>12}\n", title, "A", "B", "B - A", "of A");
}

std::string words_table(std::string_view title, const std::vector<SettingDifference>& rows) {
  size_t width = title.size(), width_a = 1;
  for (const auto& row : rows)
    width = std::max(width, row.path.size()), width_a = std::max(width_a, row.a.size());
  std::string out = fmt::format("\n{:<{}}{:<{}}B\n", title, width + 4, "A", width_a + 2);
  for (const auto& row : rows)
    out += fmt::format("  {:<{}}{:<{}}{}\n", row.path, width + 2, row.a, width_a + 2,
                       row.a == row.b ? "=" : row.b);
  return out;
}

std::string without_spaces_at_ends(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = text.substr(begin, end - begin);
    out += row.substr(0, row.find_last_not_of(' ') + 1);
    out += '\n';
    begin = end + 1;
  }
  return out;
}

io::Tree plan_of(const PlanReport& report, const std::string& name) {
  io::Tree plan = plan_event(report);
  std::erase_if(plan.members, [](const auto& member) { return member.first == "event"; });
  plan.set("run", io::Tree::of(name));
  return plan;
}

io::Tree value_of(const Row& row, std::optional<double> value) {
  if (!value) return {};
  return row.whole && std::abs(*value) < 0x1p53 ? io::Tree::of(static_cast<int64_t>(*value))
                                                : io::Tree::of(*value);
}

}  // namespace

io::Tree plan_diff_event(const PlanDiff& diff) {
  std::vector<io::Tree> settings, rows;
  for (const SettingDifference& s : diff.settings)
    settings.push_back(
        io::Tree::map({{"path", io::Tree::of(s.path)}, {"a", io::Tree::of(s.a)}, {"b", io::Tree::of(s.b)}}));
  for (const Row& row : figures(diff))
    rows.push_back(io::Tree::map({{"section", io::Tree::of(std::string(row.section))},
                                  {"name", io::Tree::of(row.name)},
                                  {"a", value_of(row, row.a)},
                                  {"b", value_of(row, row.b)},
                                  {"difference", value_of(row, row.difference())},
                                  {"percent", row.percent() ? io::Tree::of(*row.percent()) : io::Tree{}}}));
  return io::Tree::map({{"event", io::Tree::of(std::string("plan_diff"))},
                        {"a", plan_of(diff.a, diff.name_a)},
                        {"b", plan_of(diff.b, diff.name_b)},
                        {"settings", io::Tree::list(std::move(settings))},
                        {"differences", io::Tree::list(std::move(rows))}});
}

std::string plan_diff_table(const PlanDiff& diff) {
  std::string out =
      fmt::format("A: {} ({}, {} parameters)\nB: {} ({}, {} parameters)\n", diff.name_a, diff.a.model,
                  grouped_change(static_cast<double>(diff.a.num_parameters), false), diff.name_b,
                  diff.b.model, grouped_change(static_cast<double>(diff.b.num_parameters), false));
  out +=
      diff.settings.empty() ? "\nNo setting differs\n" : words_table("Settings that differ", diff.settings);
  constexpr std::pair<std::string_view, std::string_view> kSections[] = {{"classes", "Bytes by class"},
                                                                         {"peaks", "Bytes at the peak"},
                                                                         {"phases", "Process bytes by phase"},
                                                                         {"step", "A step"}};
  const std::vector<Row> rows = figures(diff);
  for (const auto& [section, title] : kSections) {
    out += heading(title);
    for (const Row& row : rows)
      if (row.section == section && (row.a.value_or(0) != 0 || row.b.value_or(0) != 0))
        out += line(row) + "\n";
  }
  out += words_table("Choices", choices(diff));
  const int64_t a = diff.a.process_peak_bytes(), b = diff.b.process_peak_bytes();
  out += fmt::format("\nThe process peaks at {} with A and at {} with B\n", to_string(Bytes(a)),
                     to_string(Bytes(b)));
  return without_spaces_at_ends(out);
}

}  // namespace plimsoll::planner
