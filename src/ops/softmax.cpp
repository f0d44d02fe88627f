// Softmax and its logarithm.
#include "ops/softmax.h"

#include <cmath>

#include "ops/cross_entropy_math.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_softmax(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  in.floating();
  return in.results({{out_dtype(in, t, DType::kF32), t.inputs[0].shape}});
}

Result<Types> infer_softmax_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "y"});
  if (!in) return in.error();
  in.floating().shaped(1, t.inputs[0].shape);
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), t.inputs[0].shape}});
}

void vjp_softmax(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  if (!ctx.cotangent(0).valid() || !ctx.wants(0)) return;
  ctx.add(0,
          b.op("softmax_grad", {ctx.cotangent(0), op.outputs[0]},
               {{"log", op.attrs.flag("log")}, {"out", std::string(ir::name(b.type(op.inputs[0]).dtype))}}));
}

void reference_softmax(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  const size_t width = at(ctx.inputs[0]->type.shape.dim(-1));
  for (size_t row = 0; row < x.size(); row += width) {
    const double lse = log_sum_exp(&x[row], width);
    for (size_t i = row; i < row + width; ++i)
      ctx.outputs[0]->data[i] = ctx.op.attrs.flag("log") ? x[i] - lse : std::exp(x[i] - lse);
  }
}

void reference_softmax_grad(RefContext& ctx) {
  const auto &dy = ctx.inputs[0]->data, &y = ctx.inputs[1]->data;
  const bool log = ctx.op.attrs.flag("log");
  const size_t width = at(ctx.inputs[0]->type.shape.dim(-1));
  for (size_t row = 0; row < dy.size(); row += width) {
    double sum = 0;
    for (size_t i = row; i < row + width; ++i) sum += log ? dy[i] : dy[i] * y[i];
    for (size_t i = row; i < row + width; ++i)
      ctx.outputs[0]->data[i] = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
  }
}

}  // namespace

OpGroup softmax_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "softmax",
       .summary = "softmax over the last axis, or its logarithm",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {bool_attr("log"), out_attr()},
       .infer = infer_softmax,
       .vjp = vjp_softmax,
       .cost = elementwise_cost<12>,
       .reference = reference_softmax,
       .autocast = ir::AutocastClass::kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}},
       .output_dtypes = {{0, "out"}}},
      {.name = "softmax_grad",
       .summary = "cotangent of the operand of softmax",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {bool_attr("log"), out_attr()},
       .infer = infer_softmax_grad,
       .cost = elementwise_cost<6>,
       .reference = reference_softmax_grad,
       .autocast = ir::AutocastClass::kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}},
       .output_dtypes = {{0, "out", 0}}},
  };
  return kOps;
}

ValueId softmax(Builder& b, ValueId x) { return b.op("softmax", {x}); }
ValueId log_softmax(Builder& b, ValueId x) { return b.op("softmax", {x}, {{"log", true}}); }

}  // namespace plimsoll::ops
