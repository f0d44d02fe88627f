// One way to run a step, and its plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/prepare.h"

namespace plimsoll::train {

/// How a step is run, as far as the planner may choose it. Every way leaves the same bits.
struct Way {
  BatchSplit split;
  std::vector<std::string> recomputed = {};  ///< layers; none: as memory.recompute says
  int64_t chunk_tokens = 0;                  ///< of head and loss; 0: as large as they are without need
  bool optimizer_in_backward = false;        ///< each update where its gradient is complete
  passes::OffloadOptions offload = {};       ///< what lies elsewhere; nothing: as memory.offload says
};

struct Planned {
  Way way;
  planner::TrainingPrograms programs;
  planner::PlanReport report;
};

/// Whether what is computed again is the planner's to say.
bool chooses_recompute(const RunConfig& config, const PrepareOptions& options);

/// The plan of that way; it need not fit. Of `prepared` the model, the task, the loader and the machine's
/// memory are read. Errors: of the settings' patterns and the passes.
Result<Planned> plan_way(const RunConfig& config, const Prepared& prepared, const Way& way,
                         const runtime::Target& target, const PrepareOptions& options);

/// Of the one host buffer: reading data, summing dumped gradients.
int64_t scratch_bytes(const RunConfig& config, int64_t num_labels);

void describe_buckets(const Buckets& buckets, planner::PlanReport& report);

}  // namespace plimsoll::train
