// Places the optimizer's updates after backward, or in it as each gradient is complete.
#pragma once

#include <utility>

#include "planner/report/report.h"

namespace plimsoll::planner {

/// The plan with the updates behind backward where it fits, else with them in it unless its arena is larger:
/// by the estimate it costs nothing, so it comes before recomputation. Where the arena is as large it is
/// taken too: with recomputation the peak may move to backward's end. `plan(in_backward)` gives a Result of
/// anything with `programs` and a `report`; one plan is held at a time.
template <typename PlanOf>
auto place_updates(PlanOf&& plan) -> decltype(plan(true)) {
  auto behind = plan(false);
  if (!behind || behind->report.fits) return behind;
  const int64_t arena_bytes = behind->report.arena_bytes;
  behind->programs = {};
  auto in = plan(true);
  return in && in->report.arena_bytes <= arena_bytes ? std::move(in) : plan(false);
}

}  // namespace plimsoll::planner
