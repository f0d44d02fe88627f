// memory.optimizer_in_backward: what stands against it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::train {

/// Why a step of so many micro-batches cannot update in backward: it wants all gradients at once. Names the
/// setting; empty: nothing stands against it.
std::string against_optimizer_in_backward(const RunConfig& config, int64_t grad_accum_steps);

/// That memory.optimizer_in_backward: true contradicts nothing. Errors: kInvalidArgument naming the setting
/// that stands against it and what to do.
Status check_optimizer_in_backward(const RunConfig& config);

}  // namespace plimsoll::train
