#include "planner/report/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::planner {

int64_t bounded_bytes(const PlanReport& report, Bounded bounded) {
  switch (bounded) {
    case Bounded::kDevice:
      return report.device_peak_bytes();
    case Bounded::kHost:
      return report.host_peak_bytes();
    case Bounded::kDisk:
      return report.disk_bytes;
    case Bounded::kProcess:
      break;
  }
  return report.process_peak_bytes();
}

std::string_view pool_name(const PlanReport& report, Bounded bounded) {
  switch (bounded) {
    case Bounded::kDevice:
      return report.device_in_process ? "the device" : "the card";
    case Bounded::kHost:
      return "the host";
    case Bounded::kDisk:
      return "the disk";
    case Bounded::kProcess:
      break;
  }
  return report.device_in_process ? "the process" : "the host";
}

const Budget* exceeded(const PlanReport& report, std::span<const Budget> budgets) {
  const auto found = std::find_if(budgets.begin(), budgets.end(), [&](const Budget& budget) {
    return bounded_bytes(report, budget.bounded) > budget.bytes;
  });
  return found == budgets.end() ? nullptr : &*found;
}

int64_t excess_bytes(const PlanReport& report) {
  int64_t excess = std::numeric_limits<int64_t>::min();
  for (const Budget& budget : report.budgets)
    excess = std::max(excess, bounded_bytes(report, budget.bounded) - budget.bytes);
  return report.budgets.empty() ? 0 : excess;
}

bool is_better(const PlanReport& a, const PlanReport& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.seconds_estimated < b.seconds_estimated : excess_bytes(a) < excess_bytes(b);
}

namespace {

/// " of device memory", " of the card's memory"; nothing where the whole process is bounded.
std::string_view memory_of(const PlanReport& report, Bounded bounded) {
  switch (bounded) {
    case Bounded::kDevice:
      return report.device_in_process ? " of device memory" : " of the card's memory";
    case Bounded::kHost:
      return " of host memory";
    case Bounded::kDisk:
      return " of disk";
    case Bounded::kProcess:
      break;
  }
  return report.device_in_process ? "" : " of host memory";
}

/// What can be set so that `bytes` fit: a budget's value, or another card.
std::string advice_for(const Budget& budget, int64_t bytes) {
  const std::string needed = fmt::format("at least {} ({} bytes)", to_string(Bytes(bytes)), bytes);
  if (budget.bounded == Bounded::kDisk && budget.automatic)
    return fmt::format("free {} of disk, or name a folder that has it in memory.offload_dir", needed);
  if (budget.setting == kCardOfProfile) {
    const auto cards = cards_with(bytes);
    return cards.empty() ? fmt::format(
                               "no built-in card has {}; runtime.profile also takes a file, and 'plimsoll "
                               "plan' lists settings that need less",
                               needed)
                         : fmt::format("it takes a card with {}: runtime.profile={}", needed, cards.front());
  }
  if (budget.setting == kCardHere)
    return fmt::format(
        "it takes a card with {}; 'plimsoll plan' lists settings that need less, and memory.offload=auto "
        "keeps more in host memory",
        needed);
  return fmt::format("{} must be {} for this run", budget.setting, needed);
}

}  // namespace

Error does_not_fit(const PlanReport& report, const Budget& budget, std::string_view what,
                   std::string_view advice) {
  const int64_t bytes = bounded_bytes(report, budget.bounded);
  const std::string needed = to_string(Bytes(bytes));
  std::string hint = advice_for(budget, bytes);
  if (!advice.empty()) hint += fmt::format("; {}", advice);
  return Error{ErrorCode::kDoesNotFit,
               fmt::format("{} needs {}{} and the budget is {}", what, needed,
                           memory_of(report, budget.bounded), to_string(Bytes(budget.bytes))),
               budget.setting + (budget.automatic ? ": auto (what is available now)" : ""), hint};
}

}  // namespace plimsoll::planner
