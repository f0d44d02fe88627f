#include "planner/programs/scheduled_programs.h"

#include <set>
#include <string>
#include <utility>

#include "planner/programs/finish_program.h"
#include "planner/programs/step_graphs.h"

namespace plimsoll::planner {

using passes::ProgramId;

ScheduledPrograms::ScheduledPrograms(const StepOptions& options, const runtime::Target& target)
    : target_(&target), costs_(costs_of(options, target)), memory_(options.memory) {}

Result<ScheduledPrograms> ScheduledPrograms::create(const models::Model& model, const StepOptions& options,
                                                    const runtime::Target& target, ProgramCache& cache) {
  ScheduledPrograms scheduled(options, target);
  StepGraphs graphs(model, options, target, scheduled.costs_, &cache, scheduled.about_);
  std::set<std::string, std::less<>> declared;
  const auto schedule = [&](const ProgramId& id, StepGraphs::Written written) -> Status {
    PLIMSOLL_TRY(written.pipeline.backward(written.graph));
    PLIMSOLL_TRY(written.pipeline.schedule(written.graph));
    graphs.describe(id, written.graph, written.pipeline);
    for (const ir::StateDecl& decl : written.graph.states())
      if (declared.insert(decl.name).second) scheduled.states_.push_back(decl);
    scheduled.programs_.emplace_back(id, std::move(written.graph), written.pipeline);
    return Ok{};
  };
  const ProgramId counted{costed_program(options.accumulate),
                          bucket_of(options.sequence_length, options.buckets)};
  PLIMSOLL_ASSIGN(StepGraphs::Written training, graphs.training(counted));
  PLIMSOLL_TRY(schedule(counted, std::move(training)));
  if (options.accumulate) {
    PLIMSOLL_ASSIGN(StepGraphs::Written update, graphs.update());
    PLIMSOLL_TRY(schedule({passes::ProgramRole::kUpdate}, std::move(update)));
  }
  return scheduled;
}

Result<TrainingPrograms> ScheduledPrograms::estimate(const passes::OffloadOptions& offload) {
  TrainingPrograms result = about_;
  std::vector<passes::Program> programs;
  for (ProgramEstimates& scheduled : programs_) {
    PLIMSOLL_ASSIGN(passes::Program program, estimate(scheduled, offload, result));
    programs.push_back(std::move(program));
  }
  std::vector<ir::StateDecl> states = states_;
  for (ir::StateDecl& decl : states)
    if (decl.space == ir::MemorySpace::kDevice) decl.space = passes::offloaded_space(offload, decl);
  result.session = estimate_session(std::move(states), *target_, std::move(programs));
  return result;
}

/// Without a graph: its name, and what its arenas take.
Result<passes::Program> ScheduledPrograms::estimate(ProgramEstimates& scheduled,
                                                    const passes::OffloadOptions& offload,
                                                    TrainingPrograms& result) const {
  PLIMSOLL_ASSIGN(const ProgramEstimate estimate, scheduled.estimate(offload, costs_, result.cost));
  passes::Program program;
  program.id = scheduled.id();
  program.graph.name = passes::name(program.id);
  for (size_t s = 0; s < ir::kNumSpaces; ++s) {
    passes::PoolPlan& pool = program.plan.pools[s];
    pool.lower_bound_bytes = estimate.alive_bytes[s];
    pool.arena_bytes = round_up(passes::enough_bytes(estimate.alive_bytes[s], memory_), passes::kPageBytes);
  }
  result.unwritten_ops += estimate.num_ops;
  return program;
}

}  // namespace plimsoll::planner
