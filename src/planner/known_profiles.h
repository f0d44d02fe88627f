// Machines that are built in: cards from their vendors' data sheets, and what a CPU is taken for until it is
// measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/machine_profile.h"

namespace plimsoll::planner {

/// "t4", "l4", … in the order of the list.
const std::vector<std::string>& card_names();
/// Of those, what can hold a plan of so many bytes, the smallest first.
std::vector<std::string> cards_with(int64_t bytes);
/// Upper and lower case, '-', '_' and blanks are the same. Errors: kInvalidArgument with the nearest name.
Result<MachineProfile> find_card(std::string_view name);
/// One thread of a server processor with those kernels ("avx2", "amx", …): good to a factor of two.
MachineProfile generic_cpu(std::string_view instruction_set);

}  // namespace plimsoll::planner
