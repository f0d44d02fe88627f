#include "planner/report/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/numbers.h"
#include "base/units.h"
#include "planner/report/budget.h"

namespace plimsoll::planner {
namespace {

std::string bytes_text(int64_t bytes) { return to_string(Bytes(bytes)); }

/// "20.6 GiB of the card's 22.5 GiB"; without a budget "3.10 GiB of the host".
std::string pool_text(const PlanReport& r, Bounded bounded, const Budget* budget) {
  const std::string_view pool = pool_name(r, bounded);
  const std::string bytes = bytes_text(bounded_bytes(r, bounded));
  return budget == nullptr ? fmt::format("{} of {}", bytes, pool)
                           : fmt::format("{} of {}'s {}", bytes, pool, bytes_text(budget->bytes));
}

}  // namespace

std::string excess_text(const PlanReport& r) {
  std::string out;
  for (const Budget* budget : all_exceeded(r)) {
    const int64_t needed = bounded_bytes(r, budget->bounded);
    const bool is_process = budget->bounded == Bounded::kProcess && r.device_in_process;
    out += fmt::format("{}{} ({} too much)", out.empty() ? "needs " : "; ",
                       is_process ? fmt::format("{}, {} is {}", bytes_text(needed), budget->setting,
                                                bytes_text(budget->bytes))
                                  : pool_text(r, budget->bounded, budget),
                       bytes_text(needed - budget->bytes));
  }
  return out;
}

namespace {

/// What lies elsewhere than on the device.
std::string offload_text(const PlanReport& r) {
  int64_t host = 0;
  for (const PoolReport& pool : r.pools)
    if (pool.name == "host_pinned" && !r.device_is_process) host = pool.persistent_bytes + pool.arena_bytes;
  if (r.offload == "none") return "";
  std::string out;
  if (host > 0) out += fmt::format(", with {} offloaded to the host", bytes_text(host));
  if (r.disk_bytes > 0)
    out += fmt::format("{}{} offloaded to disk", host > 0 ? " and " : ", with ", bytes_text(r.disk_bytes));
  return out;
}

std::string memory_text(const PlanReport& r) {
  if (exceeded(r, r.budgets) != nullptr) return "Does NOT fit: " + excess_text(r);
  if (!r.device_in_process)
    return fmt::format("Fits: {}, {}{}", pool_text(r, Bounded::kDevice, r.device_budget()),
                       pool_text(r, Bounded::kHost, r.host_budget()), offload_text(r));
  std::string out = fmt::format("Fits: peak {}", bytes_text(r.process_peak_bytes()));
  if (r.budget_bytes > 0) out += " of " + bytes_text(r.budget_bytes);
  for (const Budget* budget : {r.device_is_process ? nullptr : r.device_budget(), r.host_budget()})
    if (budget != nullptr && budget->bounded != Bounded::kProcess)
      out += ", " + pool_text(r, budget->bounded, budget);
  return out + offload_text(r);
}

std::string step_seconds(double seconds) {
  return seconds < 100 ? fmt::format("{:.3g} s", seconds) : duration_text(seconds);
}

}  // namespace

std::string why_not(const PlanReport& r) {
  const std::vector<const Budget*> all = all_exceeded(r);
  if (all.empty()) return {};
  const Budget* over = all.front();
  std::string out = fmt::format("It does not fit because {} has {} and the plan needs {} there",
                                pool_name(r, over->bounded), bytes_text(over->bytes),
                                bytes_text(bounded_bytes(r, over->bounded)));
  if (over->bounded == Bounded::kDevice || r.device_is_process) {
    auto classes = r.classes;
    std::ranges::stable_sort(classes, std::ranges::greater(), &std::pair<std::string, int64_t>::second);
    constexpr size_t kNamed = 3;
    for (size_t i = 0; i < std::min(kNamed, classes.size()) && classes[i].second > 0; ++i)
      out += fmt::format("{}{} {}", i == 0 ? ": " : ", ", classes[i].first, bytes_text(classes[i].second));
  } else if (!r.device_is_process && r.offload != "none") {
    out += fmt::format(": state that the device does not hold is offloaded there ({})", r.offload);
  }
  return out + ".\n";
}

std::string headline(const PlanReport& r) {
  std::string line = memory_text(r);
  if (r.has_time()) {
    line += fmt::format(", about {} {}/s{}", grouped(static_cast<int64_t>(r.units_per_second())), r.unit,
                        r.pads && r.bucket_sequences == 0 ? " with padding" : "");
    if (r.total_steps)
      line += fmt::format(", {} for {} steps",
                          duration_text(r.seconds_estimated * static_cast<double>(*r.total_steps)),
                          grouped(*r.total_steps));
    else
      line += fmt::format(", {} a step", step_seconds(r.seconds_estimated));
  }
  if (r.disk && r.disk->total_bytes) {
    line += fmt::format(", {} of disk", bytes_text(*r.disk->total_bytes));
    if (r.disk->lacks_bytes())
      line += fmt::format(", of which only {} are free", bytes_text(*r.disk->free_bytes));
  }
  return line + "\n";
}

std::string recompute_line(const PlanReport& r) {
  constexpr size_t kNamed = 3;
  if (r.recompute_set.empty()) return {};
  std::string out = "Recomputed in backward (activation checkpointing): " + r.recompute_set.front();
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

std::string gathered_line(const PlanReport& r) {
  if (r.gathered_layers == 0) return {};
  return fmt::format("Parameters of the last {} layer{} stay gathered from forward to backward\n",
                     r.gathered_layers, r.gathered_layers == 1 ? "" : "s");
}

namespace {

/// Where nothing makes it fit: what was planned, and what all of it needs.
std::string tried_lines(const PlanReport& r) {
  if (r.tried.empty()) return {};
  const std::string together =
      r.tried_excess.empty() ? "" : fmt::format("  Together the plan still {}.\n", r.tried_excess);
  return fmt::format(
      "No settings make it fit. Each of these was planned, and all that help together:\n  {}\n{}"
      "  What is left is a larger budget or a smaller model.\n",
      fmt::join(r.tried, ", "), together);
}

}  // namespace

std::string remedy_lines(const PlanReport& r) {
  if (r.fits) return {};
  if (r.remedies.empty()) return tried_lines(r);
  std::string out = "Settings that would make it fit, each planned, in the order to try:\n";
  for (const Remedy& remedy : r.remedies)
    out += fmt::format("  {}\n      peak {}{}; {}\n", remedy.text(), bytes_text(remedy.peak_bytes),
                       r.has_time() ? fmt::format(", {} a step", step_seconds(remedy.seconds)) : "",
                       remedy.note);
  return out;
}

io::Tree remedies_event(const PlanReport& r) {
  std::vector<io::Tree> rows;
  for (const Remedy& remedy : r.remedies) {
    io::Tree settings = io::Tree::map();
    for (const auto& [path, value] : remedy.settings) settings.set(path, io::Tree::of(value));
    rows.push_back(io::Tree::map({{"settings", std::move(settings)},
                                  {"peak_bytes", io::Tree::of(remedy.peak_bytes)},
                                  {"seconds", r.has_time() ? io::Tree::of(remedy.seconds) : io::Tree{}},
                                  {"note", io::Tree::of(remedy.note)}}));
  }
  return io::Tree::list(std::move(rows));
}

std::string short_plan(const PlanReport& r) {
  std::string out = headline(r) + plan_head(r) + remedy_lines(r);
  if (r.fits) out += "plimsoll plan shows the memory in detail\n";
  return out;
}

}  // namespace plimsoll::planner
