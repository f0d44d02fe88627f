#include "analysis/remedies.h"
#include "engine/engine.h"
#include "strategy/explain_choice.h"
#include "strategy/run_device.h"

namespace plimsoll::engine {

Result<strategy::Prepared> Engine::plan(const settings::RunConfig& config,
                                        const strategy::PrepareOptions& options) {
  return strategy::prepare(config, *strategy::make_target(config, options.num_threads), options);
}

void Engine::explain(const settings::RunConfig& config, const strategy::PrepareOptions& options,
                     strategy::Prepared& prepared) {
  const auto target = strategy::make_target(config, options.num_threads);
  analysis::add_remedies(config, *target, options, prepared);
  strategy::add_why(config, *target, options, prepared);
}

}  // namespace plimsoll::engine
