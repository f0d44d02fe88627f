#include <optional>
#include <utility>

#include "engine/engine.h"
#include "strategy/run_device.h"
#include "telemetry/events.h"

namespace plimsoll::engine {

Result<std::unique_ptr<OpenRun>> Engine::open(const settings::RunConfig& config, const OpenOptions& options) {
  telemetry::Events events(sink_);
  auto run = std::make_unique<OpenRun>();
  run->config = config;
  const settings::RunConfig& kept = run->config;  // the trainer refers to it
  const int threads = strategy::num_threads(kept);
  const bool synthetic = kept.data.train.empty();
  training::TrainerOptions trainer_options{
      .synthetic_data = synthetic, .resume = options.resume, .stop = stop_};
  std::optional<strategy::Prepared> prepared;
  if (synthetic) {
    PLIMSOLL_ASSIGN(prepared, plan(kept, {threads, {}}));
    if (!prepared->report.fits) return strategy::does_not_fit(*prepared);
    events.plan(prepared->report, telemetry::PlanDetail::kShort);
    PLIMSOLL_ASSIGN(run->device, strategy::make_device(kept, threads, *prepared));
  } else {
    PLIMSOLL_ASSIGN(ReadyRun ready, make_ready(kept, {threads, {}}, loads_weights(kept, options.resume),
                                               options.data_progress, stop_, events));
    prepared = std::move(ready.prepared);
    run->device = std::move(ready.device);
    trainer_options.data = std::move(ready.data);
    trainer_options.model_files = std::move(ready.model_files);
  }
  PLIMSOLL_ASSIGN(run->trainer,
                  training::Trainer::create(kept, std::move(*prepared), *run->device, trainer_options));
  return run;
}

}  // namespace plimsoll::engine
