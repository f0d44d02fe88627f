// The device that a run's settings name: as planning asks it, and as it runs.
#pragma once

#include <memory>

#include "base/result.h"
#include "devices/devices.h"
#include "settings/run_config.h"

namespace plimsoll::strategy {

/// Of runtime.device, runtime.profile and runtime.discrete; memory on the disk lies in memory.offload_dir.
devices::DeviceSpec device_spec(const settings::RunConfig& config, int num_threads);
/// Made without the device.
std::unique_ptr<runtime::Target> make_target(const settings::RunConfig& config, int num_threads);
/// Errors: kIo, kInvalidArgument of what the settings ask for, as check_card_is_here. `disk_bytes`: what the
/// plan takes of the disk. `communicator`: of a run of several ranks, outlives the device.
Result<std::unique_ptr<runtime::Device>> make_device(const settings::RunConfig& config, int num_threads,
                                                     int64_t disk_bytes = 0,
                                                     runtime::Communicator* communicator = nullptr);

}  // namespace plimsoll::strategy
