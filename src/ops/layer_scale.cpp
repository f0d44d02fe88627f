// Layer scale and stochastic depth.
#include "ops/layer_scale.h"

#include <string>
#include <utility>
#include <vector>

#include "ops/operands.h"
#include "ops/random_operand.h"

namespace plimsoll::ops {
namespace {

/// Of an op whose operand 1 is the branch, followed by scale? and kept?.
void check_factors(Operands& in, const OpTypes& t) {
  const Shape& branch = t.inputs[1].shape;
  in.shaped(0, branch).shaped(2, Shape{branch.dim(-1)}).shaped(3, Shape{branch.dim(0)});
  in.require(branch.rank() >= 3, "branch must have axes between the samples and the channels", {1});
  in.require(t.has(2) || t.has(3), "scale and kept are absent");
}

Result<Types> infer_scaled_add(const OpTypes& t) {
  Operands in(t, 2, {"residual", "branch", "scale", "kept"});
  if (!in) return in.error();
  in.floating({3});
  check_factors(in, t);
  const DType sum = out_dtype(in, t, widest(t.inputs[0].dtype, t.inputs[1].dtype));
  return in.results({{sum, t.inputs[0].shape}});
}

Result<Types> infer_scaled_add_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "branch", "scale", "kept", "acc"});
  if (!in) return in.error();
  in.floating({3});
  check_factors(in, t);
  in.shaped(4, Shape{t.inputs[1].shape.dim(-1)});
  Types results = {{out_dtype(in, t, t.inputs[1].dtype), t.inputs[1].shape}};
  const DType dw = dw_dtype(in, t, t.has(2) ? t.inputs[2].dtype : DType::kF32);
  if (t.attrs.flag(kFrozen)) return in.results(std::move(results));
  in.require(t.has(2), "a scale that is absent does not learn").same_dtype(4, dw);
  results.push_back({dw, Shape{t.inputs[1].shape.dim(-1)}});
  return in.results(std::move(results));
}

void vjp_scaled_add(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(0)) ctx.add(0, dy);
  if (!ctx.wants(1) && !ctx.wants(2)) return;
  const auto optional = [&](size_t i) { return i < op.inputs.size() ? op.inputs[i] : ValueId{}; };
  const auto grads = ctx.builder().ops(
      "scaled_add_grad", trimmed({dy, op.inputs[1], optional(2), optional(3)}), frozen_unless(ctx.wants(2)));
  if (ctx.wants(1)) ctx.add(1, grads[0]);
  if (ctx.wants(2)) ctx.add(2, grads[1]);
}

/// scale * kept of element i of the branch; `kept` alone where `scaled` is false.
double factor(const RefContext& ctx, size_t i, bool scaled) {
  const Shape& branch = ctx.inputs[1]->type.shape;
  const auto optional = [&](size_t k) { return k < ctx.inputs.size() ? ctx.inputs[k] : nullptr; };
  const size_t channel = i % at(branch.dim(-1)), sample = i / at(branch.num_elements() / branch.dim(0));
  double product = 1;
  if (scaled && optional(2) != nullptr) product *= optional(2)->data[channel];
  if (optional(3) != nullptr) product *= optional(3)->data[sample];
  return product;
}

void reference_scaled_add(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + ctx.inputs[1]->data[i] * factor(ctx, i, true);
}

void reference_scaled_add_grad(RefContext& ctx) {
  const auto &dy = ctx.inputs[0]->data, &branch = ctx.inputs[1]->data;
  for (size_t i = 0; i < dy.size(); ++i) ctx.outputs[0]->data[i] = dy[i] * factor(ctx, i, true);
  if (ctx.outputs.size() == 1) return;
  std::vector<double>& sums = ctx.outputs[1]->data;
  if (ctx.inputs.size() > 4 && ctx.inputs[4] != nullptr) sums = ctx.inputs[4]->data;
  for (size_t i = 0; i < dy.size(); ++i) sums[i % sums.size()] += dy[i] * branch[i] * factor(ctx, i, false);
}

Result<Types> infer_kept_samples(const OpTypes& t) {
  Operands in(t, 1, {"random"});
  if (!in) return in.error();
  const auto shape = shape_of({t.attrs.i64("count")});
  const double p = t.attrs.f64("p");
  in.dtypes(DType::kI32).shaped(0, Shape{4});
  in.require(shape.has_value(), "count must be positive").require(p >= 0 && p < 1, "p must be in [0, 1)");
  return in.results({{DType::kF32, shape.value_or(Shape{1})}});
}

void reference_kept_samples(RefContext& ctx) {
  const double p = ctx.op.attrs.f64("p");
  RandomStream stream = stream_of(*ctx.inputs[0], ctx.op.attrs);
  for (double& kept : ctx.outputs[0]->data) {
    kept = uniform(random_words(stream, 0)[0]) >= p ? 1.0 / (1.0 - p) : 0.0;
    ++stream.sequence;
  }
}

}  // namespace

OpGroup layer_scale_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "scaled_add",
       .summary = "residual + branch * scale of each channel * kept of each sample",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 4,
       .attrs = {out_attr()},
       .infer = infer_scaled_add,
       .vjp = vjp_scaled_add,
       .cost = elementwise_cost<2>,
       .reference = reference_scaled_add,
       .autocast = ir::AutocastClass::kWidest,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}},
       .output_dtypes = {{0, "out"}}},
      {.name = "scaled_add_grad",
       .summary = "cotangents of branch and scale",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 5,
       .attrs = {out_attr(), bool_attr(kFrozen), dw_attr()},
       .infer = infer_scaled_add_grad,
       .cost = elementwise_cost<3>,
       .reference = reference_scaled_add_grad,
       .autocast = ir::AutocastClass::kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 4}},
       .in_place = {{0, 1}},
       .output_dtypes = {{0, "out", 1}, {1, "dw", 2}}},
      {.name = "kept_samples",
       .summary = "0 with probability p, else 1 / (1 - p), for each sample",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("count"), float_attr("p"), int_attr("key")},
       .infer = infer_kept_samples,
       .cost = elementwise_cost<60>,
       .reference = reference_kept_samples,
       .recompute = kNearlyFree,
       .random = 0},
  };
  return kOps;
}

ValueId scaled_add(Builder& b, ValueId residual, ValueId branch, ValueId scale, ValueId kept) {
  return b.op("scaled_add", trimmed({residual, branch, scale, kept}));
}

ValueId kept_samples(Builder& b, ValueId random, int64_t count, double p, int64_t key) {
  return b.op("kept_samples", {random}, {{"count", count}, {"p", p}, {"key", key}});
}

}  // namespace plimsoll::ops
