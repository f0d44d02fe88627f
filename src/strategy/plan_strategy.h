// One strategy of a step, and its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/recompute/recompute_search.h"
#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// How a step is run, as far as the planner may choose it. Every way leaves the same bits.
struct Strategy {
  settings::BatchSplit split;
  std::vector<std::string> recomputed = {};  ///< layers; none: as memory.recompute says
  int64_t chunk_tokens = 0;                  ///< of head and loss; 0: as large as they are without need
  bool optimizer_in_backward = false;        ///< each update where its gradient is complete
  passes::OffloadOptions offload = {};       ///< what lies elsewhere; nothing: as memory.offload says
  bool recompute_all = false;                ///< every layer computed again, as memory.recompute=full
  /// The offset search ends this close above its lower bound, as a share of it; 0: as close as is its habit.
  double tolerance = 0;
  bool operator==(const Strategy&) const = default;
};

/// What the search for a way asks of the programs of one, and keeps when they are gone.
struct StrategyFacts {
  struct Chunk {
    int64_t tokens = 0, alive_bytes = 0;
  };
  int64_t arena_bytes = 0, alive_bytes = 0;  ///< of the largest program with a backward pass
  std::vector<Chunk> chunks = {};            ///< smaller ones of the loss, and what is alive with them
  planner::RecomputeChain chain = {};        ///< without blocks where there is nothing to compute again
  planner::AliveByBlock alive = {};          ///< of that program
};

struct PlannedStep {
  Strategy strategy;
  planner::TrainingPrograms programs;
  planner::PlanReport report;
  std::shared_ptr<const StrategyFacts> facts = {};  ///< null: as they have no backward pass, or nobody asked
};

/// Whether what is computed again is the planner's to say.
bool chooses_recompute(const settings::RunConfig& config, const PrepareOptions& options);

/// About that way's plan, in a fraction of its time: of the programs that have most to hold, without offsets.
/// What it takes is the least that the plan can. `scheduled` is filled or taken, see StepOptions; null:
/// neither. Errors: as plan_strategy.
Result<PlannedStep> estimate_strategy(const settings::RunConfig& config, const Prepared& prepared,
                                      const Strategy& strategy, const runtime::Target& target,
                                      const PrepareOptions& options, planner::ScheduledPrograms* scheduled);

/// The plan of that way; it need not fit. Of `prepared` the model, the task, the loader and the machine's
/// memory are read. Errors: of the settings' patterns and the passes.
Result<PlannedStep> plan_strategy(const settings::RunConfig& config, const Prepared& prepared,
                                  const Strategy& strategy, const runtime::Target& target,
                                  const PrepareOptions& options);

/// The facts of that plan; null where no program has a backward pass.
std::shared_ptr<const StrategyFacts> facts_of(const PlannedStep& planned, const Prepared& prepared,
                                              const runtime::Target& target);

/// Holds a report of that way against the budgets as they are now.
void hold_against_budgets(const settings::RunConfig& config, const Prepared& prepared,
                          const Strategy& strategy, const runtime::Target& target,
                          const PrepareOptions& options, planner::PlanReport& report);

/// The optimizer of the run, as its program has it.
optimizers::OptimizerOptions optimizer_options(const settings::RunConfig& config);

/// Of the model's blocks that repeat.
int32_t num_blocks(const models::Model& model);

/// Of the one host buffer: reading data, summing dumped gradients.
int64_t scratch_bytes(const settings::RunConfig& config, int64_t num_labels);

void describe_buckets(const preprocessing::Buckets& buckets, planner::PlanReport& report);

}  // namespace plimsoll::strategy
