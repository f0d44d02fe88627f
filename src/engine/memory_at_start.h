// Checks before allocation that the memory of the plan is still available: data may have been made ready for
// hours, and other processes have come.
#pragma once

#include "strategy/prepare.h"
#include "telemetry/events.h"

namespace plimsoll::engine {

/// What a process may take, as it was looked up.
struct MemoryNow {
  int64_t held_bytes = 0;  ///< what it has already
  int64_t left_bytes = 0;  ///< what it could take beside that
  std::string limited_by = {};
};
/// Of what `report` will ask for: what is available, in the tightest group, and what may be reserved.
MemoryNow memory_now(const planner::PlanReport& report);

/// Where the blocks of the plan are not there: the plan that was promised no longer fits. Tells `events` so,
/// with what would, each planned within what is there. Errors: kDoesNotFit.
Status check_memory_at_start(const settings::RunConfig& config, const runtime::Target& target,
                             const strategy::PrepareOptions& planning, const MemoryNow& now,
                             strategy::Prepared& prepared, telemetry::Events& events);

}  // namespace plimsoll::engine
