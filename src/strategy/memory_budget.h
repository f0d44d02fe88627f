// memory.budget in bytes: what is given, or what the machine and the process's groups leave now.
#pragma once

#include <string>
#include <vector>

#include "base/machine_memory.h"
#include "settings/run_config.h"

namespace plimsoll::strategy {

/// `auto` is what is available less a reserve for the rest of the machine, 256 MiB and at most a tenth; a
/// share is of the limit that rules.
int64_t budget_bytes(const settings::MemoryBudget& budget, const MachineMemory& memory);
/// What tokenizing may hold, which runs before the plan does, within the same memory; 0, no bound, for
/// `auto`.
int64_t tokenizing_budget(const settings::MemoryBudget& budget, const MachineMemory& memory);

/// A line for each budget that is more than there is: what exceeds the limit is swapped out or killed.
std::vector<std::string> budget_notes(const settings::RunConfig& config, const MachineMemory& memory);

}  // namespace plimsoll::strategy
