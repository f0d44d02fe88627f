// `offload` for a program whose kernels take scratch: it leaves less room for copies that are early or late.
#pragma once

#include "passes/offload.h"
#include "passes/offload_outline.h"

namespace plimsoll::passes {

/// As `offload`.
Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context,
               const KernelScratch& scratch);

}  // namespace plimsoll::passes
