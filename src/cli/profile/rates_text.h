// A profile's rates as calibrate and doctor show them.
#pragma once

#include <string>

#include "planner/cost/machine_profile.h"

namespace plimsoll::cli {

/// Lines of copies and of the disk, two blanks before each; empty where neither was measured.
std::string copies_text(const planner::MachineProfile& profile);

}  // namespace plimsoll::cli
