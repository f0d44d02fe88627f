// A run made ready for some steps that leave its own folder alone.
#pragma once

#include <memory>
#include <string>

#include "cli/commands.h"
#include "engine/engine.h"

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

/// The run, `num_steps` long, in `folder`; what it saves within them is saved there.
settings::RunConfig short_run(settings::RunConfig config, int64_t num_steps, const std::string& folder);
/// As Engine::open, with a line for how far the data is made ready.
Result<std::unique_ptr<engine::OpenRun>> open_run(const settings::RunConfig& config, telemetry::Sink& sink);

}  // namespace plimsoll::cli
