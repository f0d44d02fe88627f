#include "passes/fusion/rounding_readers.h"

#include <algorithm>
#include <string>

namespace plimsoll::passes {

using ir::DType;
using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

std::optional<DType> rounds_to(const Op& op, ValueId v) {
  if (op.def->rounded_operands == 0 || op.attrs.find("precision") == nullptr) return std::nullopt;
  for (auto i = static_cast<size_t>(op.def->rounded_operands); i < op.inputs.size(); ++i)
    if (op.inputs[i] == v) return std::nullopt;
  const auto dtype = ir::parse_dtype(op.attrs.str("precision"));
  return dtype && ir::is_half_precision(*dtype) ? dtype : std::nullopt;
}

void hold_results(Graph& graph, OpId id, ValueId v) {
  Op& op = graph.op(id);
  for (const ir::OutputDtype& o : op.def->output_dtypes) {
    const auto output = static_cast<size_t>(o.output);
    if (o.follows >= 0 && output < op.outputs.size() && op.inputs[static_cast<size_t>(o.follows)] == v)
      op.attrs.set(o.attr, std::string(ir::name(graph.type(op.outputs[output]).dtype)));
  }
}

void read_rounded(Graph& graph, OpId id, ValueId v, ValueId rounded) {
  hold_results(graph, id, v);
  std::ranges::replace(graph.op(id).inputs, v, rounded);
}

}  // namespace plimsoll::passes
