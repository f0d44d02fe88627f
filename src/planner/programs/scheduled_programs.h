// The programs of a run in their final order with nothing offloaded yet. From there the estimate of an
// offload strategy takes one walk along each program, and no graph is written for it.
#pragma once

#include <vector>

#include "base/result.h"
#include "planner/programs/program_estimates.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {

/// Owned by the search that estimates with it.
class ScheduledPrograms {
 public:
  /// The programs that need most memory. Of `options.pipeline.offload` it matters here only whether updates
  /// are streamed. `target` outlives it. Errors: as build_training_programs.
  static Result<ScheduledPrograms> create(const models::Model& model, const StepOptions& options,
                                          const runtime::Target& target, ProgramCache& cache);

  /// What they take with that offloaded, as estimate_training_programs would have it; `offload` streams
  /// updates if the options did. Errors: of cutting updates.
  Result<TrainingPrograms> estimate(const passes::OffloadOptions& offload);

 private:
  ScheduledPrograms(const StepOptions& options, const runtime::Target& target);
  Result<passes::Program> estimate(ProgramEstimates& program, const passes::OffloadOptions& offload,
                                   TrainingPrograms& result) const;

  const runtime::Target* target_;
  CostModel costs_;
  passes::MemoryPlanOptions memory_;
  std::vector<ProgramEstimates> programs_;
  std::vector<ir::StateDecl> states_;  ///< of all programs, each name once
  TrainingPrograms about_;             ///< what does not depend on what is offloaded; without a session
};

}  // namespace plimsoll::planner
