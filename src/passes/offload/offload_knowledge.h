// `offload` with what it has to know of the device beside its options.
#pragma once

#include "passes/offload/copy_seconds.h"
#include "passes/offload/offload.h"
#include "passes/offload/offload_outline.h"

namespace plimsoll::passes {

/// Kernels' scratch leaves less room for copies that are early or late; times say how early and late they
/// have to be (empty: as there is room).
struct OffloadKnowledge {
  KernelScratch scratch = {};
  KernelSeconds kernel_seconds = {};
  CopySeconds copy_seconds = {};
};

/// As `offload`.
Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context,
               const OffloadKnowledge& known);

}  // namespace plimsoll::passes
