// Batch normalisation: the statistics, which the recorded forward alone computes, and their application, with
// the addition and the relu that follow it. Source: Ioffe & Szegedy 2015, arXiv:1502.03167.
#include "ops/batch_norm.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/batch_norm_ranks.h"
#include "ops/operands.h"
#include "ops/structure.h"

namespace plimsoll::ops {
namespace {

constexpr std::string_view kBatch = "batch", kRelu = "relu";
constexpr size_t kMean = 1, kVariance = 2, kWeight = 3, kBias = 4, kResidual = 5;

Shape channels_of(const Shape& x) { return Shape{x.dim(-1)}; }

Result<Types> infer_batch_statistics(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().require(x.num_rows() > 1, "expected more than 1 value per channel", {0});
  const TensorType statistic{DType::kF32, channels_of(x)};
  return in.results({statistic, statistic});
}

Result<Types> infer_batch_norm(const OpTypes& t) {
  Operands in(t, 5, {"x", "mean", "variance", "weight", "bias", "residual"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating({kMean, kVariance});
  for (size_t i = kMean; i <= kBias; ++i) in.shaped(i, channels_of(x));
  in.shaped(kResidual, x);
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), x}});
}

/// `adds`: of the fused addition, whose y says where relu let pass.
Result<Types> infer_grad(const OpTypes& t, bool adds) {
  std::vector<std::string_view> names{"dy", "x", "mean", "variance", "weight", "bias", "acc_dw", "acc_db"};
  if (adds) names[5] = "y", names.emplace_back("dy2");
  Operands in(t, 6, std::move(names));
  if (!in) return in.error();
  const Shape& x = t.inputs[1].shape;
  const Shape row = channels_of(x);
  in.floating({2, 3}).shaped(0, x).shaped(2, row).shaped(3, row).shaped(4, row).shaped(5, adds ? x : row);
  in.shaped(6, row).shaped(7, row);
  if (adds) in.shaped(8, x);
  const DType dw = dw_dtype(in, t, t.inputs[4].dtype);
  Types results = {t.inputs[1]};
  if (adds) results.push_back({out_dtype(in, t, t.inputs[5].dtype), x});
  if (t.attrs.flag(kFrozen)) return in.results(std::move(results));
  in.same_dtype(6, dw).same_dtype(7, dw);
  results.insert(results.end(), 2, {dw, row});
  return in.results(std::move(results));
}
Result<Types> infer_batch_norm_grad(const OpTypes& t) { return infer_grad(t, false); }
Result<Types> infer_batch_norm_add_grad(const OpTypes& t) { return infer_grad(t, true); }

void vjp_batch_norm(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  PLIMSOLL_CHECK(op.attrs.flag(kBatch) || (!ctx.wants(kMean) && !ctx.wants(kVariance)),
                 "batch_norm: given statistics have no derivative");
  const bool residual = op.inputs.size() > kResidual && op.inputs[kResidual].valid();
  const bool adds = residual && op.attrs.flag(kRelu);
  if (residual && !adds && ctx.wants(kResidual)) ctx.add(kResidual, dy);
  const bool learns = ctx.wants(kWeight) || ctx.wants(kBias);
  if (!ctx.wants(0) && !learns && !(adds && ctx.wants(kResidual))) return;
  const bool of_ranks = op.attrs.find("ranks") != nullptr;
  ir::Attrs attrs = frozen_unless(learns || of_ranks);
  attrs.set("eps", op.attrs.f64("eps"));
  if (op.attrs.flag(kBatch) && !of_ranks) attrs.set(kBatch, true);
  if (of_ranks && b.type(op.inputs[kWeight]).dtype != DType::kF32)
    attrs.set("dw", std::string(ir::name(DType::kF32)));
  if (op.attrs.flag(kRelu) && !adds) attrs.set(kRelu, true);
  if (adds && b.type(op.inputs[kResidual]).dtype != b.type(op.outputs[0]).dtype)
    attrs.set("out", std::string(ir::name(b.type(op.inputs[kResidual]).dtype)));
  std::vector<ValueId> operands{dy, op.inputs[0], op.inputs[kMean], op.inputs[kVariance], op.inputs[kWeight]};
  operands.push_back(adds ? op.outputs[0] : op.inputs[kBias]);
  const auto grads =
      b.ops(adds ? "batch_norm_add_grad" : "batch_norm_grad", std::move(operands), std::move(attrs));
  if (!b.status()) return;
  const size_t dw = adds ? 2 : 1;
  if (ctx.wants(0))
    ctx.add(0, of_ranks ? through_ranks(b, op, grads[0], grads[dw], grads[dw + 1]) : grads[0]);
  if (adds && ctx.wants(kResidual)) ctx.add(kResidual, grads[1]);
  const DType dtype = b.type(op.inputs[kWeight]).dtype;
  if (ctx.wants(kWeight)) ctx.add(kWeight, cast(b, grads[dw], dtype));
  if (ctx.wants(kBias)) ctx.add(kBias, cast(b, grads[dw + 1], dtype));
}

// ---- references

double rstd_of(const RefContext& ctx, double variance) {
  return 1.0 / std::sqrt(variance + ctx.op.attrs.f64("eps"));
}

void reference_batch_statistics(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  const size_t channels = ctx.outputs[0]->data.size();
  const auto rows = static_cast<double>(x.size() / channels);
  auto &mean = ctx.outputs[0]->data, &variance = ctx.outputs[1]->data;
  for (size_t i = 0; i < x.size(); ++i) mean[i % channels] += x[i] / rows;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - mean[i % channels];
    variance[i % channels] += difference * difference / rows;
  }
}

void reference_batch_norm(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  const size_t channels = ctx.inputs[kMean]->data.size();
  const RefTensor* residual = ctx.inputs.size() > kResidual ? ctx.inputs[kResidual] : nullptr;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    const double xhat = (x[i] - ctx.inputs[kMean]->data[c]) * rstd_of(ctx, ctx.inputs[kVariance]->data[c]);
    double y = xhat * ctx.inputs[kWeight]->data[c] + ctx.inputs[kBias]->data[c];
    if (residual != nullptr) y += residual->data[i];
    ctx.outputs[0]->data[i] = ctx.op.attrs.flag(kRelu) && y <= 0 ? 0.0 : y;
  }
}

/// Operands of the gradients' references: dz, xhat and where results go.
struct Gradient {
  explicit Gradient(RefContext& ctx, bool adds)
      : dz(ctx.inputs[0]->data), xhat(ctx.inputs[1]->data), channels(ctx.inputs[2]->data.size()) {
    const RefTensor* more = ctx.inputs.size() > 8 ? ctx.inputs[8] : nullptr;
    for (size_t i = 0; i < xhat.size(); ++i) {
      const size_t c = i % channels;
      if (more != nullptr) dz[i] += more->data[i];
      xhat[i] = (xhat[i] - ctx.inputs[2]->data[c]) * rstd_of(ctx, ctx.inputs[3]->data[c]);
      const double y =
          adds ? ctx.inputs[5]->data[i] : xhat[i] * ctx.inputs[4]->data[c] + ctx.inputs[5]->data[c];
      if ((adds || ctx.op.attrs.flag(kRelu)) && y <= 0) dz[i] = 0;
    }
  }
  std::vector<double> dz, xhat;
  size_t channels;
};

void differentiate(RefContext& ctx, bool adds) {
  const Gradient g(ctx, adds);
  std::vector<double> dw(g.channels), db(g.channels);
  for (size_t i = 0; i < g.dz.size(); ++i) {
    dw[i % g.channels] += g.dz[i] * g.xhat[i];
    db[i % g.channels] += g.dz[i];
  }
  const double rows = static_cast<double>(g.dz.size() / g.channels);
  for (size_t i = 0; i < g.dz.size(); ++i) {
    const size_t c = i % g.channels;
    const double through = ctx.op.attrs.flag(kBatch) ? db[c] / rows + g.xhat[i] * dw[c] / rows : 0.0;
    ctx.outputs[0]->data[i] =
        ctx.inputs[4]->data[c] * rstd_of(ctx, ctx.inputs[3]->data[c]) * (g.dz[i] - through);
  }
  if (adds) ctx.outputs[1]->data = g.dz;
  if (ctx.op.attrs.flag(kFrozen)) return;
  const auto sum = [&](size_t acc, const std::vector<double>& part, RefTensor& to) {
    const RefTensor* from = acc < ctx.inputs.size() ? ctx.inputs[acc] : nullptr;
    for (size_t c = 0; c < part.size(); ++c) to.data[c] = part[c] + (from != nullptr ? from->data[c] : 0.0);
  };
  sum(6, dw, *ctx.outputs[adds ? 2 : 1]);
  sum(7, db, *ctx.outputs[adds ? 3 : 2]);
}
void reference_batch_norm_grad(RefContext& ctx) { differentiate(ctx, false); }
void reference_batch_norm_add_grad(RefContext& ctx) { differentiate(ctx, true); }

Cost cost_batch_statistics(const OpTypes& t) {
  return cost_of(t, 4.0 * static_cast<double>(t.inputs[0].num_elements()));
}

OpDef grad_def(bool adds) {
  return {
      .name = adds ? "batch_norm_add_grad" : "batch_norm_grad",
      .summary = adds ? "cotangents of x, residual, weight and bias" : "cotangents of x, weight and bias",
      .work = {WorkKind::kReduction},
      .min_inputs = 6,
      .max_inputs = adds ? 9 : 8,
      .attrs = adds ? std::vector<AttrSpec>{float_attr("eps"), bool_attr(kBatch), bool_attr(kFrozen),
                                            out_attr(), dw_attr()}
                    : std::vector<AttrSpec>{float_attr("eps"), bool_attr(kBatch), bool_attr(kRelu),
                                            bool_attr(kFrozen), dw_attr()},
      .infer = adds ? infer_batch_norm_add_grad : infer_batch_norm_grad,
      .cost = elementwise_cost<14>,
      .reference = adds ? reference_batch_norm_add_grad : reference_batch_norm_grad,
      .autocast = ir::AutocastClass::kF32,
      .recompute = ir::RecomputeClass::kNearlyFree,
      .accumulators = adds ? std::vector<ir::Alias>{{2, 6}, {3, 7}} : std::vector<ir::Alias>{{1, 6}, {2, 7}},
      .in_place = adds ? std::vector<ir::Alias>{{0, 1}, {1, 0}, {1, 8}, {1, 5}}
                       : std::vector<ir::Alias>{{0, 1}, {0, 0}},
      .output_dtypes = adds ? std::vector<ir::OutputDtype>{{1, "out", 5}, {2, "dw", 4}, {3, "dw", 4}}
                            : std::vector<ir::OutputDtype>{{1, "dw", 4}, {2, "dw", 4}}};
}

}  // namespace

OpGroup batch_norm_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "batch_statistics",
       .summary = "mean and biased variance of each channel",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_batch_statistics,
       .cost = cost_batch_statistics,
       .reference = reference_batch_statistics,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "batch_norm",
       .summary = "(x - mean) * rstd * weight + bias, then an addition and relu",
       .work = {WorkKind::kElementwise},
       .min_inputs = 5,
       .max_inputs = 6,
       .attrs = {float_attr("eps"),
                 bool_attr(kBatch),
                 bool_attr(kRelu),
                 {.name = "ranks", .kind = ir::AttrSpec::Kind::kInt, .required = false},
                 out_attr()},
       .infer = infer_batch_norm,
       .vjp = vjp_batch_norm,
       .cost = elementwise_cost<5>,
       .reference = reference_batch_norm,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 5}},
       .output_dtypes = {{0, "out", 0}},
       .norm = {.y = 0}},
      grad_def(false),
      grad_def(true),
  };
  return kOps;
}

BatchStatistics batch_statistics(Builder& b, ValueId x) {
  const auto results = b.ops("batch_statistics", {x});
  return {results[0], results[1]};
}

ValueId batch_norm(Builder& b, ValueId x, ValueId mean, ValueId variance, ValueId weight, ValueId bias,
                   ValueId residual, const BatchNorm& how) {
  ir::Attrs attrs{{"eps", how.eps}};
  if (how.batch) attrs.set(kBatch, true);
  if (how.relu) attrs.set(kRelu, true);
  if (how.batch && how.ranks > 1) attrs.set("ranks", how.ranks);
  return b.op("batch_norm", trimmed({x, mean, variance, weight, bias, residual}), std::move(attrs));
}

}  // namespace plimsoll::ops
