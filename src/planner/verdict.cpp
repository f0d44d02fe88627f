#include "planner/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/numbers.h"
#include "base/units.h"
#include "planner/budget.h"

namespace plimsoll::planner {
namespace {

std::string bytes_text(int64_t bytes) { return to_string(Bytes(bytes)); }

std::string memory_text(const PlanReport& r) {
  if (const Budget* over = exceeded(r, r.budgets)) {
    const int64_t needed = bounded_bytes(r, over->bounded);
    return fmt::format("Does NOT fit: the peak{} is {} over {}, {} of {}", of_pool(over->bounded),
                       bytes_text(needed - over->bytes), over->setting, bytes_text(needed),
                       bytes_text(over->bytes));
  }
  if (!r.device_in_process) {
    const auto card = std::find_if(r.budgets.begin(), r.budgets.end(),
                                   [](const Budget& b) { return b.bounded == Bounded::kDevice; });
    const std::string has = card == r.budgets.end() ? "" : " of " + bytes_text(card->bytes);
    return fmt::format("Fits: peak {}{} on the card, {} of the host", bytes_text(r.device_peak_bytes()), has,
                       bytes_text(r.host_peak_bytes()));
  }
  const std::string of = r.budget_bytes > 0 ? " of " + bytes_text(r.budget_bytes) : "";
  return fmt::format("Fits: peak {}{}", bytes_text(r.process_peak_bytes()), of);
}

std::string step_seconds(double seconds) {
  return seconds < 100 ? fmt::format("{:.3g} s", seconds) : duration_text(seconds);
}

}  // namespace

std::string verdict(const PlanReport& r) {
  std::string line = memory_text(r);
  if (r.seconds_estimated > 0) {
    line += fmt::format(", about {} tokens/s",
                        grouped(static_cast<int64_t>(static_cast<double>(r.tokens) / r.seconds_estimated)));
    if (r.total_steps)
      line += fmt::format(", {} for {} steps",
                          duration_text(r.seconds_estimated * static_cast<double>(*r.total_steps)),
                          grouped(*r.total_steps));
    else
      line += fmt::format(", {} a step", step_seconds(r.seconds_estimated));
  }
  if (r.disk && r.disk->total_bytes) line += fmt::format(", {} of disk", bytes_text(*r.disk->total_bytes));
  return line + "\n";
}

std::string recompute_line(const PlanReport& r) {
  constexpr size_t kNamed = 3;
  if (r.recompute_set.empty()) return {};
  std::string out = "Computed again in backward: " + r.recompute_set.front();
  for (size_t i = 1; i < std::min(kNamed, r.recompute_set.size()); ++i) out += ", " + r.recompute_set[i];
  if (r.recompute_set.size() > kNamed) out += fmt::format(" and {} more", r.recompute_set.size() - kNamed);
  return out + "\n";
}

std::string optimizer_in_backward_line(const PlanReport& r) {
  if (r.optimizer_in_backward)
    return fmt::format("Optimizer in backward: on{}\n",
                       r.second_backward ? ", which runs twice: for the norm, then for the updates" : "");
  if (r.no_optimizer_in_backward.empty()) return {};
  return fmt::format("Optimizer in backward: off, because {}\n", r.no_optimizer_in_backward);
}

std::string remedy_lines(const PlanReport& r) {
  if (r.fits) return {};
  if (r.remedies.empty())
    return "No setting was found that makes it fit: what was tried, 16 bits and shorter sequences together, "
           "needs "
           "more\n";
  std::string out = "What would make it fit, planned, in the order to try:\n";
  for (const Remedy& remedy : r.remedies)
    out += fmt::format("  {}\n      peak {}, {} a step; {}\n", remedy.text(), bytes_text(remedy.peak_bytes),
                       step_seconds(remedy.seconds), remedy.note);
  return out;
}

Tree remedies_event(const PlanReport& r) {
  std::vector<Tree> rows;
  for (const Remedy& remedy : r.remedies) {
    Tree settings = Tree::map();
    for (const auto& [path, value] : remedy.settings) settings.set(path, Tree::of(value));
    rows.push_back(Tree::map({{"settings", std::move(settings)},
                              {"peak_bytes", Tree::of(remedy.peak_bytes)},
                              {"seconds", Tree::of(remedy.seconds)},
                              {"note", Tree::of(remedy.note)}}));
  }
  return Tree::list(std::move(rows));
}

std::string short_plan(const PlanReport& r) {
  std::string out = verdict(r) + plan_head(r) + remedy_lines(r);
  if (r.fits) out += "plimsoll plan shows where the bytes are\n";
  return out;
}

}  // namespace plimsoll::planner
