// `offload` for a program whose kernels take scratch: it leaves less room for copies that are early or late.
#pragma once

#include <functional>

#include "ir/op_def.h"
#include "passes/offload.h"

namespace plimsoll::passes {

/// As `offload`; `workspace_bytes` as PipelineOptions has it, empty: none.
Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context,
               const std::function<int64_t(const ir::OpTypes&)>& workspace_bytes);

}  // namespace plimsoll::passes
