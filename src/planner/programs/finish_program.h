// The end that all programs share: from a graph whose passes have begun to one that is bound and planned.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline.h"
#include "passes/session_plan.h"
#include "runtime/target.h"

namespace plimsoll::planner {

/// The caller's options with the workspaces of the backend and its host, and a folder of its own for the
/// graph's text.
passes::PipelineOptions program_options(passes::PipelineOptions options, const ir::Graph& graph,
                                        const runtime::Target& target);

/// Makes of a candidate, which has offsets, a program that can run.
void issue_program(passes::Program& candidate);
/// Whether one that was planned without the verifier runs as its graph says: ir::verify and
/// passes::check_hazards. Errors: theirs.
Status verify_program(const passes::Program& program);

/// A program with its storages, without offsets.
struct BoundProgram {
  passes::ProgramId id;
  ir::Graph graph;
  passes::Binding binding;
};
/// The passes behind the derivative, and storages. Errors: kInvalidArgument of a pass.
Result<BoundProgram> bind_program(passes::ProgramId id, ir::Graph graph, passes::Pipeline& pipeline,
                                  const runtime::Target& target);
/// How far a program is planned.
enum class PlannedTo : uint8_t {
  kOffsets,  ///< a candidate, which does not run as it is
  kIssue,    ///< with the order in which its ops are issued, and its events
  kVerified  ///< and both hold
};
/// Errors: of passes::check_hazards.
Result<passes::Program> place_program(BoundProgram bound, const passes::MemoryPlanOptions& memory,
                                      PlannedTo end);

/// The passes behind the derivative, storages, offsets. Errors: kInvalidArgument of a pass.
Result<passes::Program> finish_program(passes::ProgramId id, ir::Graph graph, passes::Pipeline& pipeline,
                                       const passes::MemoryPlanOptions& memory,
                                       const runtime::Target& target);

/// The programs' session, with staging memory as the target needs it. Errors: as passes::plan_session.
Result<passes::SessionPlan> finish_session(std::vector<passes::Program> programs,
                                           const runtime::Target& target);

/// The same of programs that are not written: states, each name once, and the sizes of the arenas.
passes::SessionPlan estimate_session(std::vector<ir::StateDecl> states, const runtime::Target& target,
                                     std::vector<passes::Program> programs);

}  // namespace plimsoll::planner
