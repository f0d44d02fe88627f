#include "planner/finish_program.h"

#include <utility>

#include "ir/op_def.h"
#include "ops/op_list.h"

namespace plimsoll::planner {
namespace {

/// Values that the ops norming the gradients read, and those in whose place they lie (a tied table's gradient
/// begins as the head's): what the report counts as gradients.
std::vector<ir::ValueId> gradient_values(const ir::Graph& graph) {
  std::vector<ir::ValueId> values;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->name == "sum_squares" || op.def->name == "sum_squares_sweep")
      values.insert(values.end(), op.inputs.begin(), op.inputs.end());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Value& value = graph.value(values[i]);
    for (const ir::Alias& alias : ir::op_consumes(graph.op(value.producer)))
      if (alias.output == value.result_index)
        values.push_back(graph.op(value.producer).inputs[static_cast<size_t>(alias.input)]);
  }
  return values;
}

}  // namespace

passes::PipelineOptions program_options(passes::PipelineOptions options, const ir::Graph& graph,
                                        const runtime::Backend& backend) {
  options.workspace_bytes = [&backend](const ir::OpTypes& types) { return backend.workspace_bytes(types); };
  if (!options.dump_dir.empty()) options.dump_dir += "/" + graph.name;
  return options;
}

Result<passes::Program> finish_program(ir::Graph graph, passes::Pipeline& pipeline,
                                       const passes::MemoryPlanOptions& memory,
                                       const runtime::Backend& backend) {
  PLIMSOLL_TRY(pipeline.backward(graph));
  PLIMSOLL_ASSIGN(passes::InPlaceReport in_place, pipeline.arrange(graph));
  passes::BindOptions bind;
  bind.in_place = std::move(in_place.aliases);
  bind.gradients = gradient_values(graph);
  bind.accepts_strided = [&](std::string_view op, size_t i) { return backend.accepts_strided(op, i); };
  bind.workspace_bytes = [&](const ir::OpTypes& types) { return backend.workspace_bytes(types); };
  PLIMSOLL_ASSIGN(passes::Binding binding, passes::bind_storage(graph, bind, ops::find_op));
  passes::MemoryPlan plan = passes::plan_memory(graph, binding, memory);
  return passes::Program{std::move(graph), std::move(binding), std::move(plan)};
}

}  // namespace plimsoll::planner
