// The part of `offload` that decides when copies begin and end.
#pragma once

#include "passes/offload_items.h"
#include "passes/offload_outline.h"

namespace plimsoll::passes {

/// When loads begin and stores end. First each load is at its first use and each store ends at once, which
/// says how many bytes are alive at each op; then loads are as early, and ends of stores as late, as there is
/// room.
void space_copies(const OffloadOutliner& outliner, const OffloadOptions& options, OffloadItems& items);

}  // namespace plimsoll::passes
