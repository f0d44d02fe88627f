// A run made ready for some steps that leave its own folder alone.
#pragma once

#include <memory>
#include <string>

#include "cli/commands.h"
#include "telemetry/events.h"
#include "training/trainer.h"

namespace plimsoll::cli {

/// A folder for what training needs one for; it is removed at the end.
class ScratchRun {
 public:
  explicit ScratchRun(const std::string& output) : path(output + "/.run") {}
  ~ScratchRun();
  ScratchRun(const ScratchRun&) = delete;
  ScratchRun& operator=(const ScratchRun&) = delete;
  const std::string path;
};

/// The trainer refers to the others.
struct OpenRun {
  settings::RunConfig config;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<training::Trainer> trainer;
};

/// The run, `num_steps` long, in `folder`; what it saves within them is saved there.
settings::RunConfig short_run(settings::RunConfig config, int64_t num_steps, const std::string& folder);
/// Takes its memory and its data; tokens are drawn where the run file names none. Tells `events` of the plan.
/// Errors: as train::prepare, train::make_ready and Trainer::create; kDoesNotFit.
Result<std::unique_ptr<OpenRun>> open_run(const settings::RunConfig& config, telemetry::Events& events);

}  // namespace plimsoll::cli
