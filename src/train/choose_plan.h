// How a step is run within its budget: the split of the batch, what is computed again, chunks of the loss.
#pragma once

#include <vector>

#include "train/plan_way.h"

namespace plimsoll::train {

/// The plan of the largest micro-batch that fits; the whole batch at once stands apart: it alone has no
/// accumulators. Where none fits and memory.recompute is auto, that with the least computed again and the
/// largest chunks of the loss which does; else the one that needs least. On a machine that was calibrated any
/// split that fits and takes less time by the estimate is taken instead. `considered` gets all that were
/// planned, the one that is returned among them. Errors: as plan_way.
Result<Planned> choose_plan(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                            const PrepareOptions& options, std::vector<planner::Alternative>& considered);

}  // namespace plimsoll::train
