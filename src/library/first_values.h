// Initialises the parameters and constants of a caller's model.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "library/trace.h"
#include "runtime/session.h"

namespace plimsoll::library {

/// Draws the parameters with the session's program `init` where that knows how, else on the host: a value
/// depends on the seed, the parameter's name and the element alone. Writes the constants. Errors: of the
/// device.
Status write_first_values(const Trace& trace, int64_t seed, runtime::Session& session);

}  // namespace plimsoll::library
