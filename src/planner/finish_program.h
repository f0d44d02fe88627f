// The end that all programs share: from a graph whose passes have begun to one that is bound and planned.
#pragma once

#include "base/result.h"
#include "passes/memory_plan.h"
#include "passes/pipeline.h"
#include "passes/session_plan.h"
#include "runtime/backend.h"

namespace plimsoll::planner {

/// The caller's options with the backend's workspaces, and a folder of its own for the graph's text.
passes::PipelineOptions program_options(passes::PipelineOptions options, const ir::Graph& graph,
                                        const runtime::Backend& backend);

/// The passes behind the derivative, storages, offsets. Errors: kInvalidArgument of a pass.
Result<passes::Program> finish_program(ir::Graph graph, passes::Pipeline& pipeline,
                                       const passes::MemoryPlanOptions& memory,
                                       const runtime::Backend& backend);

}  // namespace plimsoll::planner
