// The device that a run's settings name: as planning asks it, and as it runs.
#pragma once

#include <memory>

#include "base/result.h"
#include "devices/devices.h"
#include "settings/run_config.h"
#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// Of runtime.device, runtime.profile and runtime.discrete; memory on the disk lies in memory.offload_dir.
devices::DeviceSpec device_spec(const settings::RunConfig& config, int num_threads);
/// The same for what was planned: with its programs, and of a card the algorithms of products that are known
/// for it (card_products.h). Errors: of a damaged file of these.
Result<devices::DeviceSpec> device_spec(const settings::RunConfig& config, int num_threads,
                                        const Prepared& prepared);
/// Made without the device.
std::unique_ptr<runtime::Target> make_target(const settings::RunConfig& config, int num_threads);
/// Errors: kIo, kInvalidArgument of what the settings ask for, as check_card_is_here. `disk_bytes`: what the
/// plan takes of the disk. `communicator`: of a run of several ranks, outlives the device.
Result<std::unique_ptr<runtime::Device>> make_device(const settings::RunConfig& config, int num_threads,
                                                     int64_t disk_bytes = 0,
                                                     runtime::Communicator* communicator = nullptr);
/// For what was planned: with the disk that it takes and, on a card, its programs' kernels.
Result<std::unique_ptr<runtime::Device>> make_device(const settings::RunConfig& config, int num_threads,
                                                     const Prepared& prepared,
                                                     runtime::Communicator* communicator = nullptr);

}  // namespace plimsoll::strategy
