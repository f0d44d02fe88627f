// The whole of `plimsoll generate`: model, prompts, plan, weights, batches, figures.
#pragma once

#include "base/result.h"
#include "generate/request.h"
#include "telemetry/sink.h"

namespace plimsoll::generate {

/// Plans first, says what is needed, then takes the memory. Request::stop ends it after the token at hand;
/// what was generated stays printed.
/// Errors: kInvalidArgument (flags, prompts, positions), kBadData (files), kDoesNotFit, kIo.
Status run(const Request& request, telemetry::Sink& sink);

}  // namespace plimsoll::generate
