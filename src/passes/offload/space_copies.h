// The part of `offload` that decides when copies begin and end.
#pragma once

#include <vector>

#include "passes/offload/copy_seconds.h"
#include "passes/offload/offload_items.h"
#include "passes/offload/offload_outline.h"

namespace plimsoll::passes {

/// What a program's ops and copies take, to tell how early a load is early enough.
struct CopyTimes {
  std::vector<double> kernel_seconds = {};  ///< of the device, by place in the order; empty: not known
  CopySeconds copy_seconds = {};
};

/// When loads begin and stores end. First each load is at its first use and each store ends at once, which
/// says how many bytes are alive at each op; then loads are as early, and ends of stores as late, as there is
/// room, and as it may take to hide them where times are known: what is earlier than that, or later, only
/// takes memory.
void space_copies(const OffloadOutliner& outliner, const OffloadOptions& options, const CopyTimes& times,
                  OffloadItems& items);

}  // namespace plimsoll::passes
