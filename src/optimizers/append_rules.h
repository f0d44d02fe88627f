// The update of each parameter by its rule: whole, this rank's piece of it, or, of parameters that have
// owners, the one that is this rank's (shared_states.h).
#pragma once

#include <vector>

#include "optimizers/optimizer.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {

/// What every update of a program reads.
struct SharedOperands {
  const OptimizerDef& def;
  const OptimizerOptions& options;
  ir::ValueId clip, groups, random;
};

/// Errors: as append_update.
Status append_rules(ir::Builder& b, const std::vector<Update>& updates, const SharedOperands& shared);

}  // namespace plimsoll::optimizers
