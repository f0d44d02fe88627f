#include "passes/fusion/small_m.h"

#include "ir/op_def.h"

namespace plimsoll::passes {

Result<FewRowsReport> small_m(ir::Graph& graph, const FewRowsOptions& options) {
  FewRowsReport report;
  if (options.most_rows <= 0) return report;
  Rewriter rw(graph, options.keep);
  for (const ir::OpId id : rw.order()) {
    const ir::Op linear = rw.op(id);
    if (linear.def->name != "linear" || rw.type(linear.inputs[0]).shape.num_rows() > options.most_rows)
      continue;
    const ir::DType weight = rw.type(linear.inputs[1]).dtype;
    // A weight that is rounded before it is multiplied, such as an adapter's in f32 beside a model in bf16,
    // is left to linear, which rounds as it packs.
    const bool is_rounded = options.multiplied != ir::DType::kF32 && options.multiplied != weight;
    if (ir::is_block(weight) || is_rounded) continue;
    const auto few = rw.before(id, "linear_few", linear.inputs, linear.attrs);
    rw.remove(id);
    rw.replace(linear.outputs[0], few[0]);
    ++report.replaced_ops;
  }
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
