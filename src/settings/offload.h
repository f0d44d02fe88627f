// memory.offload, put to the passes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "passes/offload/offload.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// That the setting is auto, none, or a map from classes to host, disk or none, or to {host: 12} for twelve
/// layers of it, that the device can have a disk where one is named, and that the disk's budget is no share.
/// Errors: kInvalidArgument.
Status check_offload(const RunConfig& config);
/// Where the run has its classes lie; auto and none: on the device. On the CPU the host's memory is the
/// device's.
passes::OffloadOptions offload_options(const RunConfig& config);
/// Where things can lie on the run's device, the quickest to reach first: on the CPU "disk", whose host's
/// memory is the device's; beside a card, one that is planned for too, "host".
std::vector<std::string> offload_places(const RunConfig& config);
/// Whether what is offloaded is the planner's to say.
bool chooses_offload(const RunConfig& config);
/// A line where a place that is asked for means nothing on the run's device.
std::vector<std::string> offload_notes(const RunConfig& config);
/// "none", "optimizer disk, activations host 12 of 32 layers"; what it is called in the settings.
std::string offload_text(const passes::OffloadOptions& options);
/// The folder of what lies on the disk: memory.offload_dir, else output.dir.
const std::string& offload_folder(const RunConfig& config);

}  // namespace plimsoll::settings
