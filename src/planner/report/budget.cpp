#include "planner/report/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"
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

std::vector<const Budget*> all_exceeded(const PlanReport& report) {
  const auto lack = [&](const Budget* b) { return bounded_bytes(report, b->bounded) - b->bytes; };
  std::vector<const Budget*> all;
  for (const Budget& budget : report.budgets)
    if (lack(&budget) > 0 && std::ranges::find(all, budget.bounded, &Budget::bounded) == all.end())
      all.push_back(&budget);
  std::ranges::stable_sort(all, std::ranges::greater(), lack);
  return all;
}

Error does_not_fit(const PlanReport& report, std::string_view what, std::string_view advice) {
  std::vector<Error> errors;
  for (const Budget* budget : all_exceeded(report)) {
    const int64_t bytes = bounded_bytes(report, budget->bounded);
    errors.push_back({ErrorCode::kDoesNotFit,
                      fmt::format("{} needs {}{} and the budget is {}", what, to_string(Bytes(bytes)),
                                  memory_of(report, budget->bounded), to_string(Bytes(budget->bytes))),
                      budget->setting + (budget->automatic ? ": auto (what is available now)" : ""),
                      advice_for(*budget, bytes)});
  }
  PLIMSOLL_CHECK(!errors.empty());
  Error first = std::move(errors.front());
  if (!advice.empty()) first.hint += fmt::format("; {}", advice);
  first.more.assign(std::make_move_iterator(errors.begin() + 1), std::make_move_iterator(errors.end()));
  return first;
}

}  // namespace plimsoll::planner
