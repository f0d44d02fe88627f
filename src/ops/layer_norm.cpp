// Layer normalisation, alone and fused with the residual stream's addition before it.
// Source: Ba, Kiros & Hinton 2016, arXiv:1607.06450.
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/operands.h"
#include "ops/rounded_copy.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_layer_norm(const OpTypes& t) {
  Operands in(t, 3, {"x", "weight", "bias"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().shaped(1, Shape{x.dim(-1)}).shaped(2, Shape{x.dim(-1)});
  const TensorType statistic{DType::kF32, without_last(x)};
  const DType y = out_dtype(in, t, t.inputs[0].dtype);
  return in.results({{y, x}, statistic, statistic});
}

Result<Types> infer_add_layer_norm(const OpTypes& t) {
  Operands in(t, 4, {"x", "residual", "weight", "bias"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().shaped(1, x).shaped(2, Shape{x.dim(-1)}).shaped(3, Shape{x.dim(-1)});
  const TensorType statistic{DType::kF32, without_last(x)};
  const DType sum = widest(t.inputs[0].dtype, t.inputs[1].dtype), y = out_dtype(in, t, sum);
  return in.results({{sum, x}, {y, x}, statistic, statistic});
}

Result<Types> infer_grad(const OpTypes& t, size_t required, std::vector<std::string_view> names) {
  Operands in(t, required, std::move(names));
  if (!in) return in.error();
  const Shape& x = t.inputs[1].shape;
  const Shape row{x.dim(-1)};
  in.floating({3, 4}).shaped(0, x).shaped(2, row).shaped(3, without_last(x)).shaped(4, without_last(x));
  if (required == 6) in.shaped(5, x);
  in.shaped(required, row).shaped(required + 1, row);
  const DType dw = dw_dtype(in, t, t.inputs[2].dtype);
  Types results = {{out_dtype(in, t, t.inputs[1].dtype, "dx"), x}};
  if (!t.attrs.flag(kFrozen)) {
    in.same_dtype(required, dw).same_dtype(required + 1, dw);
    results.insert(results.end(), 2, {dw, row});
  }
  add_rounded_copy(in, t, results);
  return in.results(std::move(results));
}
Result<Types> infer_layer_norm_grad(const OpTypes& t) {
  return infer_grad(t, 5, {"dy", "x", "weight", "mean", "rstd", "acc_dw", "acc_db"});
}
Result<Types> infer_layer_norm_grad_add(const OpTypes& t) {
  return infer_grad(t, 6, {"dy", "x", "weight", "mean", "rstd", "d_residual", "acc_dw", "acc_db"});
}

void vjp_layer_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid() && !ctx.cotangent(2).valid(),
                 "layer_norm: statistics have no derivative");
  if (!dy.valid() || (!ctx.wants(0) && !ctx.wants(1) && !ctx.wants(2))) return;
  const auto grads =
      ctx.builder().ops("layer_norm_grad", {dy, op.inputs[0], op.inputs[1], op.outputs[1], op.outputs[2]},
                        frozen_unless(ctx.wants(1) || ctx.wants(2)));
  for (size_t i = 0; i < 3; ++i)
    if (ctx.wants(i)) ctx.add(i, grads[i]);
}

void vjp_add_layer_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dsum = ctx.cotangent(0);
  const ValueId dy = ctx.cotangent(1);
  PLIMSOLL_CHECK(!ctx.cotangent(2).valid() && !ctx.cotangent(3).valid(),
                 "add_layer_norm: statistics have no derivative");
  ValueId dx = dsum;
  if (dy.valid()) {
    std::vector<ValueId> inputs = {dy, op.outputs[0], op.inputs[2], op.outputs[2], op.outputs[3]};
    if (dsum.valid()) inputs.push_back(dsum);
    const auto grads = ctx.builder().ops(dsum.valid() ? "layer_norm_grad_add" : "layer_norm_grad",
                                         std::move(inputs), frozen_unless(ctx.wants(2) || ctx.wants(3)));
    dx = grads[0];
    if (ctx.wants(2)) ctx.add(2, grads[1]);
    if (ctx.wants(3)) ctx.add(3, grads[2]);
  }
  if (!dx.valid()) return;
  for (size_t i = 0; i < 2; ++i)
    if (ctx.wants(i)) ctx.add(i, dx);
}

ValueId rebuild_add_layer_norm(Builder& b, const Op& fused, size_t output) {
  const Op op = fused;
  if (output == 0) return add(b, op.inputs[0], op.inputs[1]);
  return b.ops("layer_norm", {op.outputs[0], op.inputs[2], op.inputs[3]}, op.attrs)[output - 1];
}

// ---- references
// --------------------------------------------------------------------------------------------------

void normalise(const RefTensor& x, const RefTensor& weight, const RefTensor& bias, double eps, RefTensor& y,
               RefTensor& mean, RefTensor& rstd) {
  const size_t width = weight.data.size();
  for (size_t row = 0; row < rstd.data.size(); ++row) {
    const double* in = &x.data[row * width];
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += in[i];
    const double centre = sum / static_cast<double>(width);
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += (in[i] - centre) * (in[i] - centre);
    mean.data[row] = centre;
    rstd.data[row] = 1.0 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i)
      y.data[row * width + i] = (in[i] - centre) * rstd.data[row] * weight.data[i] + bias.data[i];
  }
}

void reference_layer_norm(RefContext& ctx) {
  normalise(*ctx.inputs[0], *ctx.inputs[1], *ctx.inputs[2], ctx.op.attrs.f64("eps"), *ctx.outputs[0],
            *ctx.outputs[1], *ctx.outputs[2]);
}

void reference_add_layer_norm(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + ctx.inputs[1]->data[i];
  store(*ctx.outputs[0]);
  normalise(*ctx.outputs[0], *ctx.inputs[2], *ctx.inputs[3], ctx.op.attrs.f64("eps"), *ctx.outputs[1],
            *ctx.outputs[2], *ctx.outputs[3]);
}

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight; plus d_residual where given. The
/// accumulators are operands `acc` and `acc` + 1.
void differentiate(RefContext& ctx, const RefTensor* d_residual, size_t acc) {
  const auto& dy = ctx.inputs[0]->data;
  const auto& x = ctx.inputs[1]->data;
  const auto& weight = ctx.inputs[2]->data;
  const auto& mean = ctx.inputs[3]->data;
  const auto& rstd = ctx.inputs[4]->data;
  const size_t width = weight.size();
  std::array<std::vector<double>, 2> sums = {std::vector<double>(width), std::vector<double>(width)};
  for (size_t k = 0; k < 2; ++k)
    if (acc + k < ctx.inputs.size() && ctx.inputs[acc + k] != nullptr) sums[k] = ctx.inputs[acc + k]->data;
  const double share = 1.0 / static_cast<double>(width);
  for (size_t row = 0; row < rstd.size(); ++row) {
    double mean_g = 0;
    double mean_gx = 0;
    for (size_t i = 0; i < width; ++i) {
      const double g = dy[row * width + i] * weight[i];
      mean_g += g * share;
      mean_gx += g * (x[row * width + i] - mean[row]) * rstd[row] * share;
    }
    for (size_t i = 0; i < width; ++i) {
      const size_t e = row * width + i;
      const double xhat = (x[e] - mean[row]) * rstd[row];
      const double dx = rstd[row] * (dy[e] * weight[i] - mean_g - xhat * mean_gx);
      ctx.outputs[0]->data[e] = d_residual != nullptr ? d_residual->data[e] + dx : dx;
      sums[0][i] += dy[e] * xhat;
      sums[1][i] += dy[e];
    }
  }
  for (size_t k = 0; k < 2 && !ctx.op.attrs.flag(kFrozen); ++k) ctx.outputs[1 + k]->data = std::move(sums[k]);
  give_rounded_copy(ctx);
}

void reference_layer_norm_grad(RefContext& ctx) { differentiate(ctx, nullptr, 5); }
void reference_layer_norm_grad_add(RefContext& ctx) { differentiate(ctx, ctx.inputs[5], 6); }

}  // namespace

OpGroup layer_norm_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "layer_norm",
       .summary = "layer normalisation",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {float_attr("eps"), out_attr()},
       .infer = infer_layer_norm,
       .vjp = vjp_layer_norm,
       .cost = elementwise_cost<7>,
       .reference = reference_layer_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out", 0}},
       .norm = {.y = 0, .with_add = "add_layer_norm"}},
      {.name = "layer_norm_grad",
       .summary = "cotangents of x, weight and bias",
       .work = {WorkKind::kReduction},
       .min_inputs = 5,
       .max_inputs = 7,
       .attrs = {dw_attr(), bool_attr(kFrozen), dx_attr(), rounded_attr()},
       .infer = infer_layer_norm_grad,
       .cost = elementwise_cost<14>,
       .reference = reference_layer_norm_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 5}, {2, 6}},
       .in_place = {{0, 0}},
       .output_dtypes = {{0, "dx", 1}, {1, "dw", 2}, {2, "dw", 2}},
       .with_add = {"layer_norm_grad_add", 5}},
      {.name = "add_layer_norm",
       .summary = "sum = x + residual, then layer_norm",
       .work = {WorkKind::kReduction},
       .min_inputs = 4,
       .max_inputs = 4,
       .attrs = {float_attr("eps"), out_attr()},
       .infer = infer_add_layer_norm,
       .vjp = vjp_add_layer_norm,
       .cost = elementwise_cost<8>,
       .reference = reference_add_layer_norm,
       .rebuild = rebuild_add_layer_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}},
       .output_dtypes = {{1, "out"}},
       .norm = {.y = 1, .sum = 0}},
      {.name = "layer_norm_grad_add",
       .summary = "layer_norm_grad plus the residual's cotangent",
       .work = {WorkKind::kReduction},
       .min_inputs = 6,
       .max_inputs = 8,
       .attrs = {dw_attr(), bool_attr(kFrozen), dx_attr(), rounded_attr()},
       .infer = infer_layer_norm_grad_add,
       .cost = elementwise_cost<15>,
       .reference = reference_layer_norm_grad_add,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 6}, {2, 7}},
       .in_place = {{0, 5}},
       .output_dtypes = {{0, "dx", 1}, {1, "dw", 2}, {2, "dw", 2}}},
  };
  return kOps;
}

LayerNorm layer_norm(Builder& b, ValueId x, ValueId weight, ValueId bias, double eps) {
  const auto results = b.ops("layer_norm", {x, weight, bias}, {{"eps", eps}});
  return {results[0], results[1], results[2]};
}

}  // namespace plimsoll::ops
