// Group normalisation. Source: Wu & He 2018, arXiv:1803.08494.
#include "ops/group_norm.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_group_norm(const OpTypes& t) {
  Operands in(t, 3, {"x", "weight", "bias"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const int64_t groups = t.attrs.i64("groups");
  in.floating().shaped(1, Shape{x.dim(-1)}).shaped(2, Shape{x.dim(-1)});
  in.require(x.rank() >= 3, "x must have axes between the samples and the channels", {0});
  in.require(groups > 0 && x.dim(-1) % groups == 0, "groups must divide the channels", {0});
  const TensorType statistic{DType::kF32, Shape{x.dim(0), groups > 0 ? groups : 1}};
  const DType y = out_dtype(in, t, t.inputs[0].dtype);
  return in.results({{y, x}, statistic, statistic});
}

Result<Types> infer_group_norm_grad(const OpTypes& t) {
  Operands in(t, 5, {"dy", "x", "weight", "mean", "rstd", "acc_dw", "acc_db"});
  if (!in) return in.error();
  const Shape &x = t.inputs[1].shape, &mean = t.inputs[3].shape;
  const Shape row{x.dim(-1)};
  in.floating({3, 4}).shaped(0, x).shaped(2, row).shaped(4, mean).shaped(5, row).shaped(6, row);
  in.require(x.rank() >= 3, "x must have axes between the samples and the channels", {1});
  in.require(mean.rank() == 2 && mean.dim(0) == x.dim(0) && x.dim(-1) % mean.dim(1) == 0,
             "mean must be of samples and groups", {3, 1});
  const DType dw = dw_dtype(in, t, t.inputs[2].dtype);
  if (t.attrs.flag(kFrozen)) return in.results({t.inputs[1]});
  in.same_dtype(5, dw).same_dtype(6, dw);
  return in.results({t.inputs[1], {dw, row}, {dw, row}});
}

void vjp_group_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid() && !ctx.cotangent(2).valid(),
                 "group_norm: statistics have no derivative");
  if (!dy.valid() || (!ctx.wants(0) && !ctx.wants(1) && !ctx.wants(2))) return;
  const auto grads =
      ctx.builder().ops("group_norm_grad", {dy, op.inputs[0], op.inputs[1], op.outputs[1], op.outputs[2]},
                        frozen_unless(ctx.wants(1) || ctx.wants(2)));
  for (size_t i = 0; i < 3; ++i)
    if (ctx.wants(i)) ctx.add(i, grads[i]);
}

// ---- references

/// Which sample and group, and which channel, an element is of.
struct Places {
  Places(const Shape& x, int64_t groups)
      : channels(at(x.dim(-1))),
        per_sample(at(x.num_elements() / x.dim(0))),
        of_group(channels / at(groups)),
        num_groups(at(groups)),
        count(static_cast<double>(per_sample / at(groups))) {}
  [[nodiscard]] size_t channel(size_t i) const { return i % channels; }
  [[nodiscard]] size_t group(size_t i) const { return i / per_sample * num_groups + channel(i) / of_group; }
  size_t channels, per_sample, of_group, num_groups;
  double count;  ///< elements of a group of a sample
};

void reference_group_norm(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  const Places p(ctx.inputs[0]->type.shape, ctx.op.attrs.i64("groups"));
  auto &mean = ctx.outputs[1]->data, &rstd = ctx.outputs[2]->data;
  for (size_t i = 0; i < x.size(); ++i) mean[p.group(i)] += x[i] / p.count;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - mean[p.group(i)];
    rstd[p.group(i)] += difference * difference / p.count;
  }
  for (double& r : rstd) r = 1.0 / std::sqrt(r + ctx.op.attrs.f64("eps"));
  for (size_t i = 0; i < x.size(); ++i)
    ctx.outputs[0]->data[i] =
        (x[i] - mean[p.group(i)]) * rstd[p.group(i)] * ctx.inputs[1]->data[p.channel(i)] +
        ctx.inputs[2]->data[p.channel(i)];
}

void reference_group_norm_grad(RefContext& ctx) {
  const auto &dy = ctx.inputs[0]->data, &x = ctx.inputs[1]->data, &weight = ctx.inputs[2]->data;
  const auto &mean = ctx.inputs[3]->data, &rstd = ctx.inputs[4]->data;
  const Places p(ctx.inputs[1]->type.shape, ctx.inputs[3]->type.shape.dim(1));
  const auto xhat = [&](size_t i) { return (x[i] - mean[p.group(i)]) * rstd[p.group(i)]; };
  std::vector<double> mean_g(mean.size()), mean_gx(mean.size());
  std::vector<std::vector<double>> sums(2, std::vector<double>(p.channels));
  for (size_t k = 0; k < 2; ++k)
    if (5 + k < ctx.inputs.size() && ctx.inputs[5 + k] != nullptr) sums[k] = ctx.inputs[5 + k]->data;
  for (size_t i = 0; i < x.size(); ++i) {
    const double g = dy[i] * weight[p.channel(i)];
    mean_g[p.group(i)] += g / p.count;
    mean_gx[p.group(i)] += g * xhat(i) / p.count;
    sums[0][p.channel(i)] += dy[i] * xhat(i);
    sums[1][p.channel(i)] += dy[i];
  }
  for (size_t i = 0; i < x.size(); ++i)
    ctx.outputs[0]->data[i] = rstd[p.group(i)] * (dy[i] * weight[p.channel(i)] - mean_g[p.group(i)] -
                                                  xhat(i) * mean_gx[p.group(i)]);
  for (size_t k = 0; k < 2 && ctx.outputs.size() > 1; ++k) ctx.outputs[1 + k]->data = std::move(sums[k]);
}

}  // namespace

OpGroup group_norm_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "group_norm",
       .summary = "normalisation of each sample's groups of channels",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {int_attr("groups"), float_attr("eps"), out_attr()},
       .infer = infer_group_norm,
       .vjp = vjp_group_norm,
       .cost = elementwise_cost<7>,
       .reference = reference_group_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .output_dtypes = {{0, "out", 0}},
       .norm = {.y = 0}},
      {.name = "group_norm_grad",
       .summary = "cotangents of x, weight and bias",
       .work = {WorkKind::kReduction},
       .min_inputs = 5,
       .max_inputs = 7,
       .attrs = {bool_attr(kFrozen), dw_attr()},
       .infer = infer_group_norm_grad,
       .cost = elementwise_cost<14>,
       .reference = reference_group_norm_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 5}, {2, 6}},
       .in_place = {{0, 1}, {0, 0}},
       .output_dtypes = {{1, "dw", 2}, {2, "dw", 2}}},
  };
  return kOps;
}

GroupNorm group_norm(Builder& b, ValueId x, ValueId weight, ValueId bias, int64_t groups, double eps) {
  const auto results = b.ops("group_norm", {x, weight, bias}, {{"groups", groups}, {"eps", eps}});
  return {results[0], results[1], results[2]};
}

}  // namespace plimsoll::ops
