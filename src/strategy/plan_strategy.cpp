#include "strategy/plan_strategy.h"

#include <utility>

#include "planner/programs/largest_backward.h"
#include "planner/programs/loss_chunks.h"
#include "planner/report/budget.h"
#include "settings/offload.h"
#include "settings/precision.h"
#include "strategy/step_options.h"
#include "strategy/step_report.h"
#include "strategy/update_placement.h"

namespace plimsoll::strategy {

bool chooses_recompute(const settings::RunConfig& config, const PrepareOptions& options) {
  return options.purpose == Purpose::kTrain && config.memory.recompute.mode == settings::RecomputeMode::kAuto;
}

passes::OffloadOptions StrategyPlanner::offload_of(const Strategy& strategy) const {
  passes::OffloadOptions offload =
      strategy.offload.any() ? strategy.offload : settings::offload_options(scope_.config);
  offload.num_blocks = scope_.prepared.model->num_blocks();
  offload.updates_on_host =
      scope_.options.purpose == Purpose::kTrain &&
      updates_on_host(scope_.config, scope_.prepared, scope_.target, offload, strategy.split);
  return offload;
}

planner::StepOptions StrategyPlanner::step_options(const Strategy& strategy,
                                                   const passes::OffloadOptions& offload) const {
  return strategy::step_options(scope_, strategy, offload, finds_least_);
}

Result<PlannedStep> StrategyPlanner::finish(const Strategy& strategy, const planner::StepOptions& options,
                                            planner::TrainingPrograms programs) const {
  PLIMSOLL_TRY(settings::check_overrides_used(programs, *scope_.prepared.model, scope_.config.training));
  planner::PlanReport report = report_of(scope_, strategy, options, programs);
  compare_with_budgets(strategy, report);
  return PlannedStep{strategy, std::move(programs), std::move(report)};
}

/// Plans by the programs that `make` gives for StepOptions. Updates run where they are faster. Gradients and
/// weights on their way take memory of the host: where that is short, the device updates after all.
template <typename Make>
Result<PlannedStep> StrategyPlanner::plan_by(const Strategy& strategy, const Make& make) const {
  const auto plan_with = [&](const passes::OffloadOptions& offload) -> Result<PlannedStep> {
    planner::StepOptions options = step_options(strategy, offload);
    PLIMSOLL_ASSIGN(planner::TrainingPrograms programs, make(options));
    return finish(strategy, options, std::move(programs));
  };
  passes::OffloadOptions offload = offload_of(strategy);
  PLIMSOLL_ASSIGN(PlannedStep planned, plan_with(offload));
  const planner::Budget* over = planner::exceeded(planned.report, planned.report.budgets);
  const bool lacks_host_memory = over != nullptr && (over->bounded == planner::Bounded::kHost ||
                                                     over->bounded == planner::Bounded::kProcess);
  if (!lacks_host_memory || !offload.updates_on_host ||
      scope_.config.memory.update_on_host != settings::UpdateOnHost::kAuto)
    return planned;
  offload.updates_on_host = false;
  PLIMSOLL_ASSIGN(PlannedStep moved, plan_with(offload));
  return planner::is_better(moved.report, planned.report) ? std::move(moved) : std::move(planned);
}

Result<PlannedStep> StrategyPlanner::plan(const Strategy& strategy,
                                          std::vector<passes::Program> estimated) const {
  return plan_by(strategy, [&](const planner::StepOptions& options) {
    return planner::build_training_programs(*scope_.prepared.model, options, scope_.target, *programs_,
                                            std::move(estimated));
  });
}

Result<PlannedStep> StrategyPlanner::plan_with_text(const Strategy& strategy) const {
  return plan_by(strategy, [&](planner::StepOptions options) {
    options.pipeline.dump_dir = scope_.options.dump_ir;
    options.pipeline.verify = true;
    options.are_candidates = false;
    return planner::build_training_programs(*scope_.prepared.model, options, scope_.target);
  });
}

Result<PlannedStep> StrategyPlanner::estimate(const Strategy& strategy) const {
  return plan_by(strategy, [&](planner::StepOptions options) {
    options.finds_gains = options.finds_gains && strategy.chunk_tokens == 0;
    return planner::estimate_training_programs(*scope_.prepared.model, options, scope_.target, *programs_);
  });
}

Result<planner::ScheduledPrograms> StrategyPlanner::schedule(const Strategy& strategy) const {
  planner::StepOptions options = step_options(strategy, offload_of(strategy));
  options.finds_gains = false;
  return planner::ScheduledPrograms::create(*scope_.prepared.model, options, scope_.target, *programs_);
}

Result<PlannedStep> StrategyPlanner::estimate(const Strategy& strategy,
                                              planner::ScheduledPrograms& scheduled) const {
  return plan_by(strategy, [&](const planner::StepOptions& options) {
    return scheduled.estimate(options.pipeline.offload);
  });
}

std::shared_ptr<const StrategyFacts> StrategyPlanner::facts_of(const PlannedStep& planned) const {
  const passes::Program* program = planner::largest_backward(planned.programs.session);
  if (program == nullptr) return {};
  auto facts = std::make_shared<StrategyFacts>();
  facts->arena_bytes = program->plan.device().arena_bytes;
  facts->alive_bytes = planner::most_alive(*program, {});
  const std::vector<planner::LossChunk> chunks = planner::smaller_chunks(*program, scope_.target);
  for (const planner::LossChunk& chunk : chunks)
    facts->chunks.push_back({chunk.tokens, planner::most_alive(*program, chunk)});
  facts->alive = planner::alive_by_block(*program, static_cast<size_t>(scope_.prepared.model->num_blocks()));
  if (planned.programs.gains.empty()) return facts;
  facts->chain = planner::recompute_chain(*program, planned.programs.gains, chunks, *scope_.prepared.costs);
  return facts;
}

void StrategyPlanner::compare_with_budgets(const Strategy& strategy, planner::PlanReport& report) const {
  strategy::compare_with_budgets(scope_, strategy, report);
}

}  // namespace plimsoll::strategy
