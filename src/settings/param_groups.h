// training.freeze, unfreeze and param_groups: from YAML to what the model and the optimizer take.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "models/selection.h"
#include "optimizers/optimizer.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// Reads a list of groups; null is none. Errors: kInvalidArgument naming the group, its key and the nearest.
Result<ParamGroups> parse_param_groups(const io::Tree& value);
/// The groups as YAML in one line; "null" where there are none.
std::string param_groups_text(const ParamGroups& groups);

/// What the optimizer has no use for. Errors: kInvalidArgument.
Status check_param_groups(const TrainingSettings& training);

/// Which tensors learn, and in which group.
models::Selection selection_of(const TrainingSettings& training);
/// What each group says itself.
std::vector<optimizers::GroupHyper> group_hypers(const TrainingSettings& training);

}  // namespace plimsoll::settings
