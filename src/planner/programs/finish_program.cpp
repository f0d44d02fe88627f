#include "planner/programs/finish_program.h"

#include <algorithm>
#include <utility>

#include "ir/op_def.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "passes/order/check_hazards.h"
#include "runtime/kernel_traits.h"

namespace plimsoll::planner {
namespace {

/// Values that the ops norming the gradients read, and those in whose place they lie (a tied table's gradient
/// begins as the head's): what the report counts as gradients.
std::vector<ir::ValueId> gradient_values(const ir::Graph& graph) {
  std::vector<ir::ValueId> values;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->reads_gradients) values.insert(values.end(), op.inputs.begin(), op.inputs.end());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Value& value = graph.value(values[i]);
    for (const ir::Alias& alias : ir::op_consumes(graph.op(value.producer)))
      if (alias.output == value.result_index)
        values.push_back(graph.op(value.producer).inputs[static_cast<size_t>(alias.input)]);
  }
  return values;
}

/// Parameters, or their averages, that the ranks send each other to read them whole.
std::vector<ir::ValueId> gathered_values(const ir::Graph& graph) {
  std::vector<ir::ValueId> values;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->traffic == nullptr) continue;
    const ir::Op& read = graph.op(graph.value(op.inputs[0]).producer);
    if (read.def->state != ir::StateAccess::kRead) continue;
    const ir::StateClass of = graph.find_state(read.attrs.str("name"))->state_class;
    if (of == ir::StateClass::kParameter || of == ir::StateClass::kOptimizerState)
      values.push_back(op.outputs[0]);
  }
  return values;
}

}  // namespace

passes::PipelineOptions program_options(passes::PipelineOptions options, const ir::Graph& graph,
                                        const runtime::Target& target) {
  options.workspace_bytes = [&target](const ir::OpTypes& types) { return target.workspace_bytes(types); };
  if (const runtime::Target* host = target.host())
    options.host_workspace_bytes = [host](const ir::OpTypes& types) { return host->workspace_bytes(types); };
  options.share_casts = target.rounds_apart();
  options.fuse_bias_grads = target.sums_beside_products();
  options.fp8.computed_in = [&target](const ir::OpTypes& types) { return target.computes_codes_in(types); };
  if (!options.dump_dir.empty()) options.dump_dir += "/" + graph.name;
  return options;
}

Result<BoundProgram> bind_program(passes::ProgramId id, ir::Graph graph, passes::Pipeline& pipeline,
                                  const runtime::Target& target) {
  PLIMSOLL_TRY(pipeline.backward(graph));
  PLIMSOLL_ASSIGN(passes::InPlaceReport in_place, pipeline.arrange(graph));
  passes::BindOptions bind;
  bind.in_place = std::move(in_place.aliases);
  bind.gradients = gradient_values(graph);
  bind.gathered = gathered_values(graph);
  runtime::set_kernels(target, bind);
  bind.runs_twice = pipeline.options().runs_twice;
  PLIMSOLL_ASSIGN(passes::Binding binding, passes::bind_storage(graph, bind, ops::find_op));
  return BoundProgram{id, std::move(graph), std::move(binding)};
}

Result<passes::Program> place_program(BoundProgram bound, const passes::MemoryPlanOptions& memory,
                                      PlannedTo end) {
  passes::MemoryPlan plan = passes::plan_memory(bound.graph, bound.binding, memory);
  passes::Program program{std::move(bound.graph), std::move(bound.binding), std::move(plan), {}, bound.id};
  if (memory.bound_only || end == PlannedTo::kOffsets) return program;
  issue_program(program);
  if (end == PlannedTo::kVerified)
    PLIMSOLL_TRY(passes::check_hazards(program.graph, program.binding, program.plan, program.issue));
  return program;
}

void issue_program(passes::Program& candidate) {
  candidate.issue = passes::issue_order(candidate.graph, candidate.binding, candidate.plan);
}

Result<passes::Program> finish_program(passes::ProgramId id, ir::Graph graph, passes::Pipeline& pipeline,
                                       const passes::MemoryPlanOptions& memory,
                                       const runtime::Target& target) {
  PLIMSOLL_ASSIGN(BoundProgram bound, bind_program(id, std::move(graph), pipeline, target));
  return place_program(std::move(bound), memory,
                       pipeline.options().verify ? PlannedTo::kVerified : PlannedTo::kIssue);
}

Status verify_program(const passes::Program& program) {
  PLIMSOLL_TRY(ir::verify(program.graph));
  return passes::check_hazards(program.graph, program.binding, program.plan, program.issue);
}

namespace {

passes::SessionPlanOptions session_options(bool has_disk, const runtime::Target& target) {
  // Long enough that a copy's cost is its bytes, short enough that four of them do not show.
  constexpr int64_t kTransferBytes = int64_t{1} << 20;
  return {.transfer_bytes = has_disk || !target.shares_host_memory() ? kTransferBytes : 0};
}
bool is_on_disk(const ir::StateDecl& decl) { return decl.space == ir::MemorySpace::kDisk; }

}  // namespace

Result<passes::SessionPlan> finish_session(std::vector<passes::Program> programs,
                                           const runtime::Target& target) {
  const bool has_disk = std::ranges::any_of(programs, [](const passes::Program& program) {
    return std::ranges::any_of(program.graph.states(), is_on_disk);
  });
  return passes::plan_session(std::move(programs), session_options(has_disk, target));
}

passes::SessionPlan estimate_session(std::vector<ir::StateDecl> states, const runtime::Target& target,
                                     std::vector<passes::Program> programs) {
  const bool has_disk = std::ranges::any_of(states, is_on_disk);
  return passes::plan_session(std::move(states), std::move(programs), session_options(has_disk, target));
}

}  // namespace plimsoll::planner
