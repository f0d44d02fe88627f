// Rules between the settings of several ranks and those of the rest of a run.
#pragma once

#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {

/// What a run of several ranks cannot have beside them, one error each. Empty for one rank.
std::vector<Error> check_distributed(const RunConfig& config);

/// Ranks that share the update of the parameters and the optimizer's state; 1: each has all of it.
int64_t updating_ranks(const DistributedSettings& distributed);

/// Whether each of several ranks has its pieces of the gradients alone.
bool shares_gradients(const DistributedSettings& distributed);
/// Whether each of several ranks has its part of the parameters alone.
bool shares_parameters(const DistributedSettings& distributed);

/// Whether the ranks' settings name a rank, or a place to meet: what a launcher says where they do not.
bool names_rank(const DistributedSettings& distributed);

}  // namespace plimsoll::settings
