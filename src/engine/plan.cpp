#include <utility>

#include "analysis/remedies.h"
#include "engine/engine.h"
#include "engine/owned_target.h"
#include "strategy/explain_choice.h"
#include "strategy/run_device.h"

namespace plimsoll::engine {

Result<strategy::Prepared> Engine::plan(const settings::RunConfig& config,
                                        const strategy::PrepareOptions& options) {
  strategy::PlanCache cache;
  return plan(config, options, cache);
}

Result<strategy::Prepared> Engine::plan(const settings::RunConfig& config,
                                        const strategy::PrepareOptions& options, strategy::PlanCache& cache) {
  std::unique_ptr<runtime::Target> target = strategy::make_target(config, options.num_threads);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, strategy::prepare(config, *target, options, cache));
  prepared.costs = owning(std::move(prepared.costs), std::move(target));
  return prepared;
}

void Engine::explain(const settings::RunConfig& config, const strategy::PrepareOptions& options,
                     strategy::Prepared& prepared, strategy::PlanCache cache) {
  const auto target = strategy::make_target(config, options.num_threads);
  strategy::add_why(config, *target, options, cache, prepared);
  analysis::add_remedies(config, *target, options, prepared, std::move(cache));
}

}  // namespace plimsoll::engine
