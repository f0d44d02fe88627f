// memory.optimizer_in_backward: what stands against it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// Why a step of so many micro-batches does not update in backward: it wants all gradients at once. Names the
/// setting; empty: nothing stands against it. Clipping does unless backward may run twice.
std::string against_optimizer_in_backward(const RunConfig& config, int64_t grad_accum_steps);

/// That memory.optimizer_in_backward: true contradicts nothing but clipping, whose cost only a plan knows.
/// Errors: kInvalidArgument naming the setting that stands against it and what to do.
Status check_optimizer_in_backward(const RunConfig& config);

/// Whether clipping stands against memory.optimizer_in_backward: true; and its error, with what a second
/// backward would cost of a step's time: 0.6 for 60 %.
bool clipping_contradicts(const RunConfig& config);
Error clipping_error(const RunConfig& config, double cost);

}  // namespace plimsoll::settings
