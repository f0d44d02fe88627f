// Loss scaling on the device: gradients of a scaled loss are unscaled on their way into the update, which a
// factor that is not a number leaves out; then the scale moves, as torch.amp.GradScaler's does.
#include "ops/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_unscale(const OpTypes& t) {
  Operands in(t, 2, {"norm", "scaler"});
  if (!in) return in.error();
  in.dtypes(DType::kF32)
      .shaped(0, Shape{1})
      .shaped(1, Shape{kScalerFields})
      .require(max_norm_of(t.attrs) > 0, "max_norm must be positive");
  return in.results({{DType::kF32, Shape{1}}, {DType::kF32, Shape{1}}});
}

Result<Types> infer_next_scale(const OpTypes& t) {
  Operands in(t, 2, {"scaler", "norm"});
  if (!in) return in.error();
  in.dtypes(DType::kF32)
      .shaped(0, Shape{kScalerFields})
      .shaped(1, Shape{1})
      .require(t.attrs.f64("growth_factor") >= 1, "growth_factor must be at least 1")
      .require(t.attrs.f64("backoff_factor") > 0 && t.attrs.f64("backoff_factor") <= 1,
               "backoff_factor must be above 0 and at most 1")
      .require(t.attrs.i64("growth_interval") > 0, "growth_interval must be positive");
  return in.results({t.inputs[0]});
}

void reference_unscale(RefContext& ctx) {
  const double scaled = ctx.inputs[0]->data[0], inverse = 1.0 / ctx.inputs[1]->data[kScale];
  const double norm = scaled * inverse;
  ctx.outputs[0]->data[0] = norm;
  ctx.outputs[1]->data[0] = std::isfinite(scaled)
                                ? std::min(1.0, max_norm_of(ctx.op.attrs) / (norm + 1e-6)) * inverse
                                : std::numeric_limits<double>::quiet_NaN();
}

void reference_next_scale(RefContext& ctx) {
  std::array<float, kScalerFields> scaler{};
  for (size_t i = 0; i < scaler.size(); ++i) scaler[i] = static_cast<float>(ctx.inputs[0]->data[i]);
  scaler = next_scaler(scaler, scaling_of(ctx.op.attrs), std::isfinite(ctx.inputs[1]->data[0]));
  std::copy(scaler.begin(), scaler.end(), ctx.outputs[0]->data.begin());
}

}  // namespace

double max_norm_of(const ir::Attrs& attrs) {
  return attrs.find("max_norm") != nullptr ? attrs.f64("max_norm") : std::numeric_limits<double>::infinity();
}

LossScaling scaling_of(const ir::Attrs& attrs) {
  return {attrs.f64("growth_factor"), attrs.f64("backoff_factor"), attrs.i64("growth_interval")};
}

std::array<float, kScalerFields> next_scaler(std::array<float, kScalerFields> scaler,
                                             const LossScaling& scaling, bool finite) {
  const auto scale = static_cast<double>(scaler[kScale]);
  scaler[kSkipped] = finite ? 0.0F : 1.0F;
  if (!finite) {
    scaler[kScale] = static_cast<float>(scale * scaling.backoff_factor);
    scaler[kCleanSteps] = 0;
    return scaler;
  }
  scaler[kCleanSteps] += 1;
  if (static_cast<int64_t>(scaler[kCleanSteps]) < scaling.growth_interval) return scaler;
  const auto grown = static_cast<float>(scale * scaling.growth_factor);
  if (std::isfinite(grown)) scaler[kScale] = grown;
  scaler[kCleanSteps] = 0;
  return scaler;
}

OpGroup loss_scale_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "unscale",
       .summary = "norm and factor of the gradients of a scaled loss",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {{"max_norm", AttrSpec::Kind::kFloat, /*required=*/false}},
       .infer = infer_unscale,
       .reference = reference_unscale,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "next_scale",
       .summary = "the loss scale for the next step",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {float_attr("growth_factor"), float_attr("backoff_factor"), int_attr("growth_interval")},
       .infer = infer_next_scale,
       .reference = reference_next_scale,
       .autocast = kF32,
       .recompute = kNever,
       .consumes = {{0, 0}}},
  };
  return kOps;
}

Unscaled unscale(Builder& b, ValueId norm, ValueId scaler, std::optional<double> max_norm) {
  ir::Attrs attrs;
  if (max_norm) attrs.set("max_norm", *max_norm);
  const auto results = b.ops("unscale", {norm, scaler}, std::move(attrs));
  return {results[0], results[1]};
}

ValueId next_scale(Builder& b, ValueId scaler, ValueId norm, const LossScaling& scaling) {
  return b.op("next_scale", {scaler, norm},
              {{"growth_factor", scaling.growth_factor},
               {"backoff_factor", scaling.backoff_factor},
               {"growth_interval", scaling.growth_interval}});
}

}  // namespace plimsoll::ops
