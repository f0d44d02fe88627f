// Measures all rates of a machine: all that `calibrate` keeps, or the little that a first plan
// needs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "devices/devices.h"
#include "measuring/kernel_rates.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::measuring {

/// All of it, within a minute: some 400 ops, fewer threads, copies, the disk of `disk_folder`. What cannot be
/// measured stays unknown, and `note` is told why; also where other work took the processors away, see
/// quiet.h.
planner::MachineProfile calibrated_rates(const std::string& disk_folder, const Shown& shown,
                                         const std::function<void(const std::string&)>& note);

/// `profile` with what that card's kernels and copies reach, by its own clock, within a minute. Errors: of
/// the device.
Result<planner::MachineProfile> card_rates(const devices::DeviceSpec& card, planner::MachineProfile profile,
                                           const Shown& shown);

/// Of what `first_rates` is given.
inline constexpr int64_t kFirstRatesBytes = int64_t{100} << 20;

/// The rates that matter most, within three seconds and kFirstRatesBytes of memory. Ends by itself on a slow
/// machine too; what it did not come to keeps the built-in rates. Where other work took the processors away
/// meanwhile, see quiet.h, it says so (is_busy): then they are a moment's, and not the machine's.
planner::MachineProfile first_rates();

}  // namespace plimsoll::measuring
