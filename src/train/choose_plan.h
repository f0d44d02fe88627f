// How a step is run within its budget: the split of the batch and what is computed again.
#pragma once

#include "train/prepare.h"

namespace plimsoll::train {

struct Planned {
  BatchSplit split;
  planner::TrainingPrograms programs;
  planner::PlanReport report;
};

/// The plan of the largest micro-batch that fits; the whole batch at once stands apart: it alone has no
/// accumulators. Where none fits and memory.recompute is auto, that with the least computed again which does;
/// else the one that needs least. Of `prepared` the model, the task, the loader and the machine's memory are
/// read. Errors: of the settings' patterns and the passes.
Result<Planned> choose_plan(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                            const PrepareOptions& options);

/// Of the one host buffer: reading data, summing dumped gradients.
int64_t scratch_bytes(const RunConfig& config, int64_t num_labels);

void describe_buckets(const Buckets& buckets, planner::PlanReport& report);

}  // namespace plimsoll::train
