// Whether the optimizer's updates stand behind backward or in it, each where its gradient is complete.
#pragma once

#include <utility>

#include "planner/budget.h"

namespace plimsoll::planner {

/// The plan with the updates behind backward where it fits, else with them in it unless that exceeds more:
/// by the estimate it costs nothing, so it comes before anything is computed again. `plan(in_backward)` gives
/// a Result of anything with `programs` and a `report`; one plan is held at a time.
template <typename PlanOf>
auto place_updates(PlanOf&& plan) -> decltype(plan(true)) {
  auto behind = plan(false);
  if (!behind || behind->report.fits) return behind;
  const int64_t excess = excess_bytes(behind->report);
  behind->programs = {};
  auto in = plan(true);
  return in && excess_bytes(in->report) <= excess ? std::move(in) : plan(false);
}

}  // namespace plimsoll::planner
