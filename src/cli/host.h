// The services of the command line for the modules below it (base/host.h).
#pragma once

namespace plimsoll::cli {

/// Remarks go to stderr, free heap goes back to the system, and what needs memory for a moment runs in a
/// process of its own.
void be_host();

}  // namespace plimsoll::cli
