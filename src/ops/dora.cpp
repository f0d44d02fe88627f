// Weights by direction and magnitude. Source: Liu et al. 2024, arXiv:2402.09353, section 4.3 for the norm
// that is a constant to the gradient.
#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_dora_norm(const OpTypes& t) {
  Operands in(t, 3, {"weight", "a", "b"});
  if (!in) return in.error();
  const Shape &weight = t.inputs[0].shape, &a = t.inputs[1].shape, &b = t.inputs[2].shape;
  in.floating({1, 2}, {}, {0})
      .require(weight.rank() == 2 && a.rank() == 2 && b.rank() == 2, "matrices are asked for", {0, 1, 2});
  if (!in) return in.error();
  const bool transposed = t.attrs.flag("transposed");
  const int64_t row = t.attrs.i64("row"), rank_row = t.attrs.i64("rank_row");
  in.require(weight.dim(transposed ? 0 : 1) == a.dim(1), "inner dimensions differ", {0, 1});
  in.require(row >= 0 && row <= weight.dim(transposed ? 1 : 0) - b.dim(0), "rows beyond the weight", {0, 2});
  in.require(rank_row >= 0 && rank_row <= a.dim(0) - b.dim(1), "ranks beyond a", {1, 2});
  return in.results({{DType::kF32, Shape{b.dim(0)}}});
}

Cost cost_dora_norm(const OpTypes& t) {
  const double in = static_cast<double>(t.inputs[1].shape.dim(1));
  return cost_of(t, (2.0 * static_cast<double>(t.inputs[2].num_elements()) + 2.0) * in);
}

void reference_dora_norm(RefContext& ctx) {
  const Shape &weight = ctx.inputs[0]->type.shape, &b = ctx.inputs[2]->type.shape;
  const bool transposed = ctx.op.attrs.flag("transposed");
  const size_t in = at(ctx.inputs[1]->type.shape.dim(1)), rank = at(b.dim(1)), width = at(weight.dim(1));
  const size_t row = at(ctx.op.attrs.i64("row")), rank_row = at(ctx.op.attrs.i64("rank_row"));
  const double scale = ctx.op.attrs.f64("scale");
  for (size_t o = 0; o < ctx.outputs[0]->data.size(); ++o) {
    double sum = 0;
    for (size_t i = 0; i < in; ++i) {
      double w = ctx.inputs[0]->data[transposed ? i * width + row + o : (row + o) * width + i];
      for (size_t k = 0; k < rank; ++k)
        w += scale * ctx.inputs[2]->data[o * rank + k] * ctx.inputs[1]->data[(rank_row + k) * in + i];
      sum += w * w;
    }
    ctx.outputs[0]->data[o] = std::sqrt(sum);
  }
}

Result<Types> infer_dora_scale(const OpTypes& t) {
  Operands in(t, 3, {"x", "magnitude", "norm"});
  if (!in) return in.error();
  const Shape row{t.inputs[0].shape.dim(-1)};
  return in.floating({1, 2}).shaped(1, row).shaped(2, row).results({t.inputs[0]});
}

/// The magnitude's gradient is summed over rows that the norm divides already: a sum that goes on from an
/// accumulator can have nothing behind it.
void vjp_dora_scale(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(0)) ctx.add(0, dora_scale(b, dy, op.inputs[1], op.inputs[2]));
  if (ctx.wants(1)) ctx.add(1, b.op("sum_rows", {b.op("dora_scale_grad", {dy, op.inputs[0], op.inputs[2]})}));
}

void reference_dora_scale(RefContext& ctx) {
  const auto &magnitude = ctx.inputs[1]->data, &norm = ctx.inputs[2]->data;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * (magnitude[i % norm.size()] / norm[i % norm.size()]);
}

Result<Types> infer_dora_scale_grad(const OpTypes& t) {
  Operands in(t, 3, {"dy", "x", "norm"});
  if (!in) return in.error();
  const Shape& x = t.inputs[1].shape;
  in.floating({2}).shaped(0, x).shaped(2, Shape{x.dim(-1)});
  return in.results({{DType::kF32, x}});
}

void reference_dora_scale_grad(RefContext& ctx) {
  const auto& norm = ctx.inputs[2]->data;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * ctx.inputs[1]->data[i] / norm[i % norm.size()];
}

}  // namespace

OpGroup dora_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "dora_norm",
       .summary = "norms of the rows of weight + scale b a",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {int_attr("row"), int_attr("rank_row"), float_attr("scale"), bool_attr("transposed")},
       .infer = infer_dora_norm,
       .cost = cost_dora_norm,
       .reference = reference_dora_norm,
       .recompute = kCompute},
      {.name = "dora_scale",
       .summary = "x times magnitude / norm over the last axis",
       .work = {WorkKind::kElementwise},
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_dora_scale,
       .vjp = vjp_dora_scale,
       .cost = elementwise_cost<2>,
       .reference = reference_dora_scale,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "dora_scale_grad",
       .summary = "dy x / norm, whose sum over rows is the magnitude's gradient",
       .work = {WorkKind::kElementwise},
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_dora_scale_grad,
       .cost = elementwise_cost<2>,
       .reference = reference_dora_scale_grad,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
  };
  return kOps;
}

ValueId dora_norm(Builder& b, ValueId weight, ValueId a, ValueId up, const DoraRows& rows) {
  return b.op("dora_norm", {weight, a, up},
              {{"row", rows.row},
               {"rank_row", rows.rank_row},
               {"scale", rows.scale},
               {"transposed", rows.transposed}});
}

ValueId dora_scale(Builder& b, ValueId x, ValueId magnitude, ValueId norm) {
  return b.op("dora_scale", {x, magnitude, norm});
}

}  // namespace plimsoll::ops
