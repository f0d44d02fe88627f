// The CUDA card that a run is planned for: the one that runtime.profile names, else the one that is here.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "planner/cost/machine_profile.h"
#include "settings/run_config.h"

namespace plimsoll::strategy {

struct RunCard {
  std::string name = {};      ///< "rtx4090"; of a card that is here its driver's
  int ordinal = 0;            ///< of runtime.device
  int capability = 0;         ///< 90; 0: not known
  int64_t bytes = 0;          ///< what plans may take of it; 0: not known
  int64_t context_bytes = 0;  ///< what is left for the context and NCCL beside these
  std::optional<planner::MachineProfile> profile = {};  ///< whose rates are known; nothing: none are
};

/// Nothing where the run is for no card. A card of the list that is here is planned for as it is without it,
/// unless its driver has less memory of it; of one that is neither here nor named nothing is known.
std::optional<RunCard> run_card(const settings::RunConfig& config);

/// That something bounds the plan: a card, a profile or memory.device_budget. Errors: kInvalidArgument.
Status check_card_is_known(const settings::RunConfig& config);

/// That the card which the run is for is here. Errors: as devices::cuda_card; kInvalidArgument where
/// runtime.profile names another card than the one that is here, or no card is here and only runtime.profile
/// asks for one.
Status check_card_is_here(const settings::RunConfig& config);

}  // namespace plimsoll::strategy
