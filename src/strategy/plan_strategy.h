// A strategy - one complete choice of how a step runs - and its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/programs/scheduled_programs.h"
#include "planner/recompute/recompute_search.h"
#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// How a step runs, as far as the planner may choose it. Every strategy computes the same bits.
struct Strategy {
  settings::BatchSplit split;
  std::vector<std::string> recomputed = {};  ///< layers; none: as memory.recompute says
  int64_t chunk_tokens = 0;                  ///< of head and loss; 0: as large as is useful
  bool optimizer_in_backward = false;        ///< each update where its gradient is complete
  passes::OffloadOptions offload = {};       ///< nothing offloaded: as memory.offload says
  bool recompute_all = false;                ///< every layer is recomputed, as memory.recompute=full
  bool keeps_weight_copies = false;          ///< weights are quantised or rounded once a step
  bool overlaps_ranks = false;               ///< ranks exchange bytes while they compute
  int32_t gathered_blocks = 0;               ///< as planner::StepOptions has it
  /// The offset search ends this close above its lower bound, as a share of it; 0: its own tolerance.
  double tolerance = 0;
  bool operator==(const Strategy&) const = default;
};

/// What the search asks of a strategy's programs, kept when the programs are gone.
struct StrategyFacts {
  struct Chunk {
    int64_t tokens = 0, alive_bytes = 0;
  };
  int64_t arena_bytes = 0, alive_bytes = 0;  ///< of the largest program with a backward pass
  std::vector<Chunk> chunks = {};            ///< smaller ones of the loss, and what is alive with them
  planner::RecomputeChain chain = {};        ///< without blocks where there is nothing to recompute
  planner::AliveByBlock alive = {};          ///< of that program
};

struct PlannedStep {
  Strategy strategy;
  planner::TrainingPrograms programs;
  planner::PlanReport report;
  std::shared_ptr<const StrategyFacts> facts = {};  ///< null: no backward pass, or not asked for
};

/// Whether the planner chooses which layers are recomputed.
bool chooses_recompute(const settings::RunConfig& config, const PrepareOptions& options);

/// A run whose strategies are planned. Of `prepared` the model, the task, the loader, the costs and the
/// machine's memory are read. What it refers to outlives it.
struct RunScope {
  const settings::RunConfig& config;
  const Prepared& prepared;
  const runtime::Target& target;
  const PrepareOptions& options;
};

/// The training settings of one rank, whose micro-batches are planned.
inline settings::TrainingSettings training_of(const RunScope& scope) {
  return settings::training_of_rank(scope.config.training, scope.config.distributed.num_ranks());
}

/// Makes plans and estimates of one strategy after another. Parts of programs that strategies share are in
/// the ProgramCache of whoever searches. Errors of all: of the settings' patterns and the passes.
class StrategyPlanner {
 public:
  /// `programs` outlives it. `finds_least` false: a plan that does not fit need not be packed closely.
  StrategyPlanner(const RunScope& scope, planner::ProgramCache& programs, bool finds_least = true)
      : scope_(scope), programs_(&programs), finds_least_(finds_least) {}

  /// The plan; it need not fit. `estimated`: programs of the strategy's estimate, with nothing offloaded;
  /// they are placed rather than made again.
  Result<PlannedStep> plan(const Strategy& strategy, std::vector<passes::Program> estimated = {}) const;
  /// The plan, verified pass by pass, with the text of each program after each pass in options.dump_ir.
  Result<PlannedStep> plan_with_text(const Strategy& strategy) const;
  /// An estimate of that plan in a fraction of its time: the programs that need most memory, without offsets.
  /// The plan needs as much memory, but for how its offsets pack.
  Result<PlannedStep> estimate(const Strategy& strategy) const;

  /// The programs of a strategy, for estimates of strategies that differ from it in what is offloaded alone.
  [[nodiscard]] Result<planner::ScheduledPrograms> schedule(const Strategy& strategy) const;
  /// The estimate by those programs.
  Result<PlannedStep> estimate(const Strategy& strategy, planner::ScheduledPrograms& scheduled) const;
  /// Whether it is the same as the other estimate: not where each op runs twice.
  [[nodiscard]] bool may_schedule() const { return scope_.config.debug.verify_steps <= 0; }

  /// The facts of a plan or an estimate that still has its programs; null where none has a backward pass.
  [[nodiscard]] std::shared_ptr<const StrategyFacts> facts_of(const PlannedStep& planned) const;
  /// Compares a report of that strategy with the budgets as they are now.
  void compare_with_budgets(const Strategy& strategy, planner::PlanReport& report) const;

  [[nodiscard]] const RunScope& scope() const { return scope_; }
  [[nodiscard]] bool finds_least() const { return finds_least_; }
  void set_finds_least(bool finds_least) { finds_least_ = finds_least; }

 private:
  [[nodiscard]] passes::OffloadOptions offload_of(const Strategy& strategy) const;
  [[nodiscard]] planner::StepOptions step_options(const Strategy& strategy,
                                                  const passes::OffloadOptions& offload) const;
  template <typename Make>
  Result<PlannedStep> plan_by(const Strategy& strategy, const Make& make) const;
  Result<PlannedStep> finish(const Strategy& strategy, const planner::StepOptions& options,
                             planner::TrainingPrograms programs) const;

  RunScope scope_;
  planner::ProgramCache* programs_;
  bool finds_least_;
};

}  // namespace plimsoll::strategy
