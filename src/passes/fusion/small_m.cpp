#include "passes/fusion/small_m.h"

#include "ir/op_def.h"

namespace plimsoll::passes {

Result<FewRowsReport> small_m(ir::Graph& graph, const FewRowsOptions& options) {
  FewRowsReport report;
  if (options.most_rows <= 0) return report;
  Rewriter rw(graph, options.keep);
  for (const ir::OpId id : rw.order()) {
    const ir::Op linear = rw.op(id);
    if (linear.def->name != "linear" || ir::is_block(rw.type(linear.inputs[1]).dtype) ||
        rw.type(linear.inputs[0]).shape.num_rows() > options.most_rows)
      continue;
    const auto few = rw.before(id, "linear_few", linear.inputs, linear.attrs);
    rw.remove(id);
    rw.replace(linear.outputs[0], few[0]);
    ++report.replaced_ops;
  }
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
