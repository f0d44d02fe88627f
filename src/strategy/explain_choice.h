// Why a step is run as it is: what was faster and did not fit, the runner-up, what more memory would buy.
#pragma once

#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// Fills report.why of a training that fits and in which something was chosen. Plans the run once more, with
/// 100 MiB more of each budget, where anything was given up for memory; `cache` is that of the first plan.
void add_why(const settings::RunConfig& config, const runtime::Target& target, const PrepareOptions& options,
             PlanCache& cache, Prepared& prepared);

}  // namespace plimsoll::strategy
