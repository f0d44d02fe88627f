#include "cli/profile/profile_run.h"

#include <filesystem>
#include <optional>

#include "cli/progress.h"
#include "engine/ready_run.h"
#include "strategy/run_device.h"

namespace plimsoll::cli {

ScratchRun::~ScratchRun() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

settings::RunConfig short_run(settings::RunConfig config, int64_t num_steps, const std::string& folder) {
  config.output.dir = folder;
  if (config.output.save_steps > num_steps) config.output.save_steps = 0;
  config.training.max_steps = num_steps;
  config.training.num_epochs.reset();
  config.training.load_best_model_at_end = false;
  config.debug.dump_dir.clear();
  return config;
}

Result<std::unique_ptr<OpenRun>> open_run(const settings::RunConfig& config, telemetry::Events& events) {
  auto run = std::make_unique<OpenRun>();
  run->config = config;
  const settings::RunConfig& kept = run->config;  // the trainer refers to it
  const int threads = strategy::num_threads(kept);
  Progress progress;
  const bool synthetic = kept.data.train.empty();
  training::TrainerOptions options{.synthetic_data = synthetic, .resume = "never"};
  std::optional<strategy::Prepared> prepared;
  if (synthetic) {
    PLIMSOLL_ASSIGN(prepared, strategy::prepare(kept, *strategy::make_target(kept, threads), {threads, {}}));
    if (!prepared->report.fits) return strategy::does_not_fit(*prepared);
    events.plan(prepared->report, telemetry::PlanDetail::kShort);
    PLIMSOLL_ASSIGN(run->device, strategy::make_device(kept, threads, prepared->report.disk_bytes));
  } else {
    PLIMSOLL_ASSIGN(engine::ReadyRun ready,
                    engine::make_ready(kept, {threads, {}}, settings::starts_pretrained(kept.model),
                                       shown_by(progress), /*stop=*/{}, events));
    prepared = std::move(ready.prepared), run->device = std::move(ready.device);
    options.data = std::move(ready.data), options.model_files = std::move(ready.model_files);
  }
  PLIMSOLL_ASSIGN(run->trainer, training::Trainer::create(kept, std::move(*prepared), *run->device, options));
  return run;
}

}  // namespace plimsoll::cli
