// Rules between the settings of several ranks and those of the rest of a run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {

/// The section alone, as a run file and its overrides give it. The rest is not checked: a launcher may know
/// the number of ranks that its checks need. Errors: as load_run_config, where a value cannot be read.
Result<DistributedSettings> load_distributed(const std::string& path, std::span<const std::string> overrides);

/// What a run of several ranks cannot have beside them, one error each. Empty for one rank.
std::vector<Error> check_distributed(const RunConfig& config);

/// Ranks that share the update of the parameters and the optimizer's state; 1: each has all of it.
int64_t updating_ranks(const DistributedSettings& distributed);

/// Whether each of several ranks has its pieces of the gradients alone.
bool shares_gradients(const DistributedSettings& distributed);
/// Whether each of several ranks has its part of the parameters alone.
bool shares_parameters(const DistributedSettings& distributed);

/// Whether ranks exchange by NCCL, from card to card; or, where that is left to what is found, may do so.
bool uses_nccl(const RunConfig& config);

/// What NCCL takes of each card beside a plan: an estimate; 0 where it is not used.
int64_t nccl_bytes(const RunConfig& config);
/// A line of that where NCCL takes some.
std::vector<std::string> rank_notes(const RunConfig& config);

/// Whether the ranks' settings name a rank, or a place to meet: what a launcher says where they do not.
bool names_rank(const DistributedSettings& distributed);

}  // namespace plimsoll::settings
