// Machines that are built in: cards from their vendors' data sheets, and what a CPU is taken for until it is
// measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

/// What of a data sheet's rate of products a card's profile has: measured on one card, assumed of all.
inline constexpr double kDataSheetProductPart = 0.75;

/// "t4", "l4", … in the order of the list.
const std::vector<std::string>& card_names();
/// Of the CUDA cards among them, what can hold a plan of so many bytes, the smallest first.
std::vector<std::string> cards_with(int64_t bytes);
/// Upper and lower case, '-', '_' and blanks are the same. Rates are the data sheet's times what of them was
/// measured to be reached on an H100, by kind of op. Errors: kInvalidArgument with the names that contain
/// this one, else the nearest.
Result<MachineProfile> find_card(std::string_view name);
/// The card of the list that a driver calls "NVIDIA A100-SXM4-80GB"; of several that with the nearest memory.
/// Nothing for other cards and for parts of one.
std::optional<MachineProfile> card_called(std::string_view driver_name, int64_t memory_bytes);
/// A card of which no rates are known: plans are compared by the ratios of a usual one, and no time is told.
MachineProfile card_of_no_known_rates();
/// One thread of a server processor with those kernels ("avx2", "amx", …): good to a factor of two.
MachineProfile generic_cpu(std::string_view instruction_set);

}  // namespace plimsoll::planner
