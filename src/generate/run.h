// The whole of `plimsoll generate`: model, prompts, plan, weights, batches, figures.
#pragma once

#include "base/result.h"
#include "generate/request.h"

namespace plimsoll::generate {

/// Plans first, says what is needed, then takes the memory. A signal ends it after the token at hand; what
/// was generated stays printed, and `interrupted_by` is its number, else 0.
/// Errors: kInvalidArgument (flags, prompts, positions), kBadData (files), kDoesNotFit, kIo.
Status run(const Request& request, int& interrupted_by);

}  // namespace plimsoll::generate
