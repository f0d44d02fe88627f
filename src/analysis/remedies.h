// Finds settings that would make a plan fit: what to try for this run, in order, each
// planned.
#pragma once

#include "strategy/prepare.h"
#include "strategy/variants.h"

namespace plimsoll::analysis {

/// Fills prepared.report.remedies, in the order to try: settings that keep results bit-identical, then
/// narrower number formats, then shorter sequences where examples have a length. It lists each setting that
/// makes the run fit by itself; if none does, the first ones that do together, without those that are then
/// not needed. A remedy's peak is that of the pool whose budget the plan exceeds. It lists nothing if the
/// plan fits, or if no setting helps.
void add_remedies(const settings::RunConfig& config, const runtime::Target& target,
                  const strategy::PrepareOptions& options, strategy::Prepared& prepared,
                  strategy::PlanCache cache = {});

/// The same for a plan that fits its budget, where only `budget_bytes` are there for the process: the plan is
/// one that does not fit, memory.budget is what there is, and each remedy says so.
void add_remedies_within(int64_t budget_bytes, const settings::RunConfig& config,
                         const runtime::Target& target, const strategy::PrepareOptions& options,
                         strategy::Prepared& prepared);

}  // namespace plimsoll::analysis
