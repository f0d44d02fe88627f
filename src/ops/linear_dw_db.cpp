// The gradients of a linear layer's weight and bias in one op: types, costs and references are those of
// linear_dw and of sum_rows.
#include <algorithm>

#include "base/check.h"
#include "ops/linear.h"
#include "ops/operands.h"

namespace plimsoll::ops {

OpGroup linear_ops();

namespace {

/// Of that file's, as the list of all ops is made from this one.
const OpDef& linear_def(std::string_view name) {
  const OpGroup group = linear_ops();
  const auto found = std::ranges::find(group, name, &OpDef::name);
  PLIMSOLL_CHECK(found != group.end(), std::string(name));
  return *found;
}
const OpDef& dw_def() { return linear_def("linear_dw"); }

/// Of `dw`: x, dy, acc?.
OpTypes types_of_dw(const OpTypes& t) {
  const auto end = t.inputs.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(t.inputs.size(), 3));
  OpTypes types{t.op, {t.inputs.begin(), end}, {}, t.attrs};
  if (!t.outputs.empty()) types.outputs = {t.outputs[0]};
  return types;
}

Result<Types> infer_linear_dw_db(const OpTypes& t) {
  PLIMSOLL_ASSIGN(Types types, dw_def().infer(types_of_dw(t)));
  const ir::Attrs attrs = with_out({}, dtype_attr(t.attrs, kBiasOut).value_or(DType::kF32));
  OpTypes sum{t.op, {t.inputs[1]}, {}, attrs};
  if (t.has(3)) sum.inputs.push_back(t.inputs[3]);
  PLIMSOLL_ASSIGN(const Types row, linear_def("sum_rows").infer(sum));
  types.push_back(row[0]);
  return types;
}

Cost cost_linear_dw_db(const OpTypes& t) {
  const double products = dw_def().cost(types_of_dw(t)).flops;
  return cost_of(t, products + static_cast<double>(t.inputs[1].num_elements()));
}

WorkSize size_linear_dw_db(const OpTypes& t, double flops) {
  return dw_def().work.size(types_of_dw(t), flops);
}

void reference_linear_dw_db(RefContext& ctx) {
  const auto input = [&](size_t i) { return i < ctx.inputs.size() ? ctx.inputs[i] : nullptr; };
  RefContext product{ctx.op, {input(0), input(1), input(2)}, {ctx.outputs[0]}};
  dw_def().reference(product);
  RefContext sum{ctx.op, {input(1), input(3)}, {ctx.outputs[1]}};
  linear_def("sum_rows").reference(sum);
}

}  // namespace

OpGroup linear_dw_db_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "linear_dw_db",
       .summary = "weight and bias gradients of linear",
       .work = {.kind = WorkKind::kProduct, .keys = {"linear_dw"}, .size = size_linear_dw_db},
       .min_inputs = 2,
       .max_inputs = 4,
       .attrs = {bool_attr("transposed"),
                 bool_attr("fp8"),
                 precision_attr(),
                 out_attr(),
                 {kBiasOut, ir::AttrSpec::Kind::kString, false}},
       .infer = infer_linear_dw_db,
       .cost = cost_linear_dw_db,
       .reference = reference_linear_dw_db,
       .autocast = ir::AutocastClass::kLowPrecision,
       .accumulators = {{0, 2}, {1, 3}},
       .output_dtypes = {{0, "out"}, {1, kBiasOut}},
       .rounded_operands = 2},
  };
  return kOps;
}

}  // namespace plimsoll::ops
