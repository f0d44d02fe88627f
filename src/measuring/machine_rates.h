// What a machine does, measured as a whole: all that `calibrate` keeps, or the little that a first plan
// needs.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "measuring/kernel_rates.h"
#include "planner/machine_profile.h"

namespace plimsoll::measuring {

/// All of it, within a minute: some 360 ops, fewer threads, copies, the disk of `disk_folder`. What cannot be
/// measured stays unknown, and `note` is told why; also where other work took the processors away, see
/// quiet.h.
planner::MachineProfile calibrated_rates(const std::string& disk_folder, const Shown& shown,
                                         const std::function<void(const std::string&)>& note);

/// The rates that matter most, within three seconds and 100 MiB of memory. Ends by itself on a slow machine
/// too; what it did not come to keeps the built-in rates. Errors: kIo where other work took the processors
/// away meanwhile, see quiet.h: what is kept is to be the machine's and not a moment's.
Result<planner::MachineProfile> first_rates();

}  // namespace plimsoll::measuring
