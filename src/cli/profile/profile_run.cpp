#include "cli/profile/profile_run.h"

#include <filesystem>

#include "cli/progress.h"

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

Result<std::unique_ptr<engine::OpenRun>> open_run(const settings::RunConfig& config, telemetry::Sink& sink) {
  Progress progress;
  return engine::Engine(sink).open(config, {.data_progress = shown_by(progress)});
}

}  // namespace plimsoll::cli
