// Root-mean-square normalisation, alone and fused with the residual stream's addition before it.
// Source: Zhang & Sennrich 2019, arXiv:1910.07467.
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/operands.h"
#include "ops/rounded_copy.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_rms_norm(const OpTypes& t) {
  Operands in(t, 2, {"x", "weight"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().shaped(1, Shape{x.dim(-1)});
  const DType y = out_dtype(in, t, t.inputs[0].dtype);
  return in.results({{y, x}, {DType::kF32, without_last(x)}});
}

Result<Types> infer_add_rms_norm(const OpTypes& t) {
  Operands in(t, 3, {"x", "residual", "weight"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().shaped(1, x).shaped(2, Shape{x.dim(-1)});
  const DType sum = widest(t.inputs[0].dtype, t.inputs[1].dtype), y = out_dtype(in, t, sum);
  return in.results({{sum, x}, {y, x}, {DType::kF32, without_last(x)}});
}

/// dx, where the weight learns its gradient, and a rounded copy of dx; the accumulator is operand `acc`.
Result<Types> gradient_types(Operands& in, const OpTypes& t, size_t acc) {
  const Shape& x = t.inputs[1].shape;
  const Shape row{x.dim(-1)};
  in.floating({3}).shaped(0, x).shaped(2, row).shaped(3, without_last(x)).shaped(acc, row);
  const DType dw = dw_dtype(in, t, t.inputs[2].dtype);
  Types results = {{out_dtype(in, t, t.inputs[1].dtype, "dx"), x}};
  if (!t.attrs.flag(kFrozen)) {
    in.same_dtype(acc, dw);
    results.push_back({dw, row});
  }
  add_rounded_copy(in, t, results);
  return in.results(std::move(results));
}

Result<Types> infer_rms_norm_grad(const OpTypes& t) {
  Operands in(t, 4, {"dy", "x", "weight", "rstd", "acc_dw"});
  if (!in) return in.error();
  return gradient_types(in, t, 4);
}

Result<Types> infer_rms_norm_grad_add(const OpTypes& t) {
  Operands in(t, 5, {"dy", "x", "weight", "rstd", "d_residual", "acc_dw"});
  if (!in) return in.error();
  in.shaped(4, t.inputs[1].shape);
  return gradient_types(in, t, 5);
}

void vjp_rms_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid(), "rms_norm: rstd is kept for the derivative and has none itself");
  if (!dy.valid() || (!ctx.wants(0) && !ctx.wants(1))) return;
  const auto grads = ctx.builder().ops("rms_norm_grad", {dy, op.inputs[0], op.inputs[1], op.outputs[1]},
                                       frozen_unless(ctx.wants(1)));
  if (ctx.wants(0)) ctx.add(0, grads[0]);
  if (ctx.wants(1)) ctx.add(1, grads[1]);
}

void vjp_add_rms_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dsum = ctx.cotangent(0);
  const ValueId dy = ctx.cotangent(1);
  PLIMSOLL_CHECK(!ctx.cotangent(2).valid(),
                 "add_rms_norm: rstd is kept for the derivative and has none itself");
  ValueId dx = dsum;
  if (dy.valid()) {
    const bool add = dsum.valid();
    std::vector<ValueId> inputs = {dy, op.outputs[0], op.inputs[2], op.outputs[2]};
    if (add) inputs.push_back(dsum);
    const auto grads = ctx.builder().ops(add ? "rms_norm_grad_add" : "rms_norm_grad", std::move(inputs),
                                         frozen_unless(ctx.wants(2)));
    dx = grads[0];
    if (ctx.wants(2)) ctx.add(2, grads[1]);
  }
  if (!dx.valid()) return;
  for (size_t i = 0; i < 2; ++i)
    if (ctx.wants(i)) ctx.add(i, dx);
}

/// From the kept sum: y and rstd by the norm alone. The sum itself is an addition.
ValueId rebuild_add_rms_norm(Builder& b, const Op& fused, size_t output) {
  const Op op = fused;
  if (output == 0) return add(b, op.inputs[0], op.inputs[1]);
  return b.ops("rms_norm", {op.outputs[0], op.inputs[2]}, op.attrs)[output - 1];
}

// ---- references
// --------------------------------------------------------------------------------------------------

void normalise(const RefTensor& x, const RefTensor& weight, double eps, RefTensor& y, RefTensor& rstd) {
  const int64_t width = weight.type.num_elements();
  for (size_t row = 0; row < rstd.data.size(); ++row) {
    const double* in = &x.data[row * at(width)];
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += in[i] * in[i];
    rstd.data[row] = 1.0 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (int64_t i = 0; i < width; ++i)
      y.data[row * at(width) + at(i)] = in[i] * rstd.data[row] * weight.data[at(i)];
  }
}

void reference_rms_norm(RefContext& ctx) {
  normalise(*ctx.inputs[0], *ctx.inputs[1], ctx.op.attrs.f64("eps"), *ctx.outputs[0], *ctx.outputs[1]);
}

void reference_add_rms_norm(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + ctx.inputs[1]->data[i];
  store(*ctx.outputs[0]);
  normalise(*ctx.outputs[0], *ctx.inputs[2], ctx.op.attrs.f64("eps"), *ctx.outputs[1], *ctx.outputs[2]);
}

/// `acc` (null where absent) and the residual's cotangent are added to what the norm gives.
void differentiate(RefContext& ctx, const RefTensor* d_residual, const RefTensor* acc) {
  const auto& dy = ctx.inputs[0]->data;
  const auto& x = ctx.inputs[1]->data;
  const auto& weight = ctx.inputs[2]->data;
  const auto& rstd = ctx.inputs[3]->data;
  const size_t width = weight.size();
  std::vector<double> dw(width);
  if (acc != nullptr) dw = acc->data;
  for (size_t row = 0; row < rstd.size(); ++row) {
    double mean = 0;
    for (size_t i = 0; i < width; ++i)
      mean += dy[row * width + i] * weight[i] * x[row * width + i] * rstd[row] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) {
      const size_t e = row * width + i;
      const double xhat = x[e] * rstd[row];
      const double dx = rstd[row] * (dy[e] * weight[i] - xhat * mean);
      ctx.outputs[0]->data[e] = d_residual != nullptr ? d_residual->data[e] + dx : dx;
      dw[i] += dy[e] * xhat;
    }
  }
  if (!ctx.op.attrs.flag(kFrozen)) ctx.outputs[1]->data = std::move(dw);
  give_rounded_copy(ctx);
}

const RefTensor* optional(const RefContext& ctx, size_t i) {
  return i < ctx.inputs.size() ? ctx.inputs[i] : nullptr;
}
void reference_rms_norm_grad(RefContext& ctx) { differentiate(ctx, nullptr, optional(ctx, 4)); }
void reference_rms_norm_grad_add(RefContext& ctx) { differentiate(ctx, ctx.inputs[4], optional(ctx, 5)); }

}  // namespace

OpGroup rms_norm_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "rms_norm",
       .summary = "root-mean-square normalisation",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {float_attr("eps"), out_attr()},
       .infer = infer_rms_norm,
       .vjp = vjp_rms_norm,
       .cost = elementwise_cost<4>,
       .reference = reference_rms_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out", 0}},
       .norm = {.y = 0, .with_add = "add_rms_norm"}},
      {.name = "rms_norm_grad",
       .summary = "cotangents of x and weight",
       .work = {WorkKind::kReduction},
       .min_inputs = 4,
       .max_inputs = 5,
       .attrs = {dw_attr(), bool_attr(kFrozen), dx_attr(), rounded_attr()},
       .infer = infer_rms_norm_grad,
       .cost = elementwise_cost<10>,
       .reference = reference_rms_norm_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 4}},
       .in_place = {{0, 0}},
       .output_dtypes = {{0, "dx", 1}, {1, "dw", 2}},
       .with_add = {"rms_norm_grad_add", 4}},
      {.name = "add_rms_norm",
       .summary = "sum = x + residual, then rms_norm",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {float_attr("eps"), out_attr()},
       .infer = infer_add_rms_norm,
       .vjp = vjp_add_rms_norm,
       .cost = elementwise_cost<5>,
       .reference = reference_add_rms_norm,
       .rebuild = rebuild_add_rms_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}},
       .output_dtypes = {{1, "out"}},
       .norm = {.y = 1, .sum = 0}},
      {.name = "rms_norm_grad_add",
       .summary = "rms_norm_grad plus the residual's cotangent",
       .work = {WorkKind::kReduction},
       .min_inputs = 5,
       .max_inputs = 6,
       .attrs = {dw_attr(), bool_attr(kFrozen), dx_attr(), rounded_attr()},
       .infer = infer_rms_norm_grad_add,
       .cost = elementwise_cost<11>,
       .reference = reference_rms_norm_grad_add,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 5}},
       .in_place = {{0, 4}},
       .output_dtypes = {{0, "dx", 1}, {1, "dw", 2}}},
  };
  return kOps;
}

RmsNorm rms_norm(Builder& b, ValueId x, ValueId weight, double eps) {
  const auto results = b.ops("rms_norm", {x, weight}, {{"eps", eps}});
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
