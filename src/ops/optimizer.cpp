// The update: norm of the gradients, clipping, AdamW; a tensor at a time and as sweeps over all of them.
// Source: Loshchilov & Hutter 2019, arXiv:1711.05101, in PyTorch's order of operations.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

constexpr size_t kSweepFirst = 2;     // clip and groups come before the tensors of a sweep
constexpr size_t kSweepOperands = 4;  // param, grad, m, v
constexpr size_t kSweepResults = 3;   // param, m, v

std::vector<std::string_view> repeated(std::string_view name, size_t count) {
  return std::vector<std::string_view>(std::max<size_t>(count, 1), name);
}

// ---- norm and clipping
// ---------------------------------------------------------------------------------------------

Result<Types> infer_sum_squares(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  return in.dtypes(DType::kF32).results({{DType::kF32, Shape{1}}});
}

Result<Types> infer_sum_squares_sweep(const OpTypes& t) {
  Operands in(t, std::max<size_t>(t.inputs.size(), 1), repeated("x", t.inputs.size()));
  if (!in) return in.error();
  return in.dtypes(DType::kF32).results({{DType::kF32, Shape{static_cast<int64_t>(t.inputs.size())}}});
}

Result<Types> infer_global_norm(const OpTypes& t) {
  Operands in(t, std::max<size_t>(t.inputs.size(), 1), repeated("squares", t.inputs.size()));
  if (!in) return in.error();
  in.dtypes(DType::kF32);
  for (size_t i = 0; i < t.inputs.size(); ++i)
    in.require(t.inputs[i].shape.rank() == 1, "squares must have one axis", {i});
  return in.results({{DType::kF32, Shape{1}}});
}

Result<Types> infer_clip_scale(const OpTypes& t) {
  Operands in(t, 1, {"norm"});
  if (!in) return in.error();
  in.dtypes(DType::kF32)
      .shaped(0, Shape{1})
      .require(t.attrs.f64("max_norm") > 0, "max_norm must be positive");
  return in.results({{DType::kF32, Shape{1}}});
}

double squares_of(const RefTensor& x) {
  double sum = 0;
  for (const double v : x.data) sum += v * v;
  return sum;
}

void reference_sum_squares(RefContext& ctx) {
  for (size_t i = 0; i < ctx.inputs.size(); ++i) ctx.outputs[0]->data[i] = squares_of(*ctx.inputs[i]);
}

void reference_global_norm(RefContext& ctx) {
  double sum = 0;
  for (const RefTensor* squares : ctx.inputs)
    for (const double v : squares->data) sum += v;
  ctx.outputs[0]->data[0] = std::sqrt(sum);
}

void reference_clip_scale(RefContext& ctx) {
  const double scale = ctx.op.attrs.f64("max_norm") / (ctx.inputs[0]->data[0] + 1e-6);
  ctx.outputs[0]->data[0] = scale > 1.0 ? 1.0 : scale;  // a NaN stays one
}

Cost cost_squares(const OpTypes& t) {
  double elements = 0;
  for (const TensorType& x : t.inputs) elements += static_cast<double>(x.num_elements());
  return cost_of(t, 2 * elements);
}

// ---- AdamW
// -----------------------------------------------------------------------------------------------------------

/// The table has a row for `group`.
void check_group(Operands& in, const Shape& groups, int64_t group, size_t operand) {
  in.require(groups.rank() == 2 && groups.dim(1) == kGroupFields,
             fmt::format("groups must be [n,{}]", +kGroupFields), {operand});
  in.require(group >= 0 && group < groups.dim(0), fmt::format("group {} is not in the table", group),
             {operand});
}

Result<Types> infer_adamw(const OpTypes& t) {
  Operands in(t, 6, {"param", "grad", "m", "v", "clip", "groups"});
  if (!in) return in.error();
  const Shape& param = t.inputs[0].shape;
  in.dtypes(DType::kF32).shaped(1, param).shaped(2, param).shaped(3, param).shaped(4, Shape{1});
  check_group(in, t.inputs[5].shape, t.attrs.i64("group"), 5);
  return in.results({t.inputs[0], t.inputs[2], t.inputs[3]});
}

Result<Types> infer_adamw_sweep(const OpTypes& t) {
  const auto& group = t.attrs.ints("group");
  const size_t wanted = kSweepFirst + kSweepOperands * group.size();
  std::vector<std::string_view> names = {"clip", "groups"};
  for (size_t i = 0; i < group.size(); ++i) names.insert(names.end(), {"param", "grad", "m", "v"});
  if (t.inputs.size() != wanted)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: takes clip, groups and (param, grad, m, v) for each of {} groups, given {} operands",
                    t.op, group.size(), t.inputs.size())};
  Operands in(t, wanted, std::move(names));
  if (!in) return in.error();
  in.dtypes(DType::kF32).shaped(0, Shape{1});
  Types results;
  for (size_t k = 0; k < group.size(); ++k) {
    const size_t first = kSweepFirst + kSweepOperands * k;
    for (size_t i = 1; i < kSweepOperands; ++i) in.shaped(first + i, t.inputs[first].shape);
    check_group(in, t.inputs[1].shape, group[k], 1);
    results.insert(results.end(), {t.inputs[first], t.inputs[first + 2], t.inputs[first + 3]});
  }
  return in.results(std::move(results));
}

std::vector<ir::Alias> sweep_consumes(const Op& op) {
  std::vector<ir::Alias> aliases;
  for (size_t first = kSweepFirst; first + kSweepOperands <= op.inputs.size(); first += kSweepOperands) {
    const auto input = static_cast<int32_t>(first);
    const auto output = static_cast<int32_t>((first - kSweepFirst) / kSweepOperands * kSweepResults);
    aliases.insert(aliases.end(), {{output, input}, {output + 1, input + 2}, {output + 2, input + 3}});
  }
  return aliases;
}

/// One tensor: operands param, grad, m, v from `first`, results from `result`.
void update(RefContext& ctx, size_t first, size_t result, double clip, const double* group) {
  const size_t count = ctx.inputs[first]->data.size();
  for (size_t i = 0; i < count; ++i) {
    const double g = ctx.inputs[first + 1]->data[i] * clip;
    double p = ctx.inputs[first]->data[i] * group[kDecayFactor];
    double m = ctx.inputs[first + 2]->data[i];
    m = m + (g - m) * group[kOneMinusBeta1];
    const double v = ctx.inputs[first + 3]->data[i] * group[kBeta2] + group[kOneMinusBeta2] * g * g;
    p = p - group[kStepSize] * (m / (std::sqrt(v) / group[kSqrtCorrection2] + group[kEpsilon]));
    ctx.outputs[result]->data[i] = p;
    ctx.outputs[result + 1]->data[i] = m;
    ctx.outputs[result + 2]->data[i] = v;
  }
}

void reference_adamw(RefContext& ctx) {
  const int64_t group = ctx.op.attrs.i64("group");
  update(ctx, 0, 0, ctx.inputs[4]->data[0], &ctx.inputs[5]->data[at(group * kGroupFields)]);
}

void reference_adamw_sweep(RefContext& ctx) {
  const auto& group = ctx.op.attrs.ints("group");
  for (size_t k = 0; k < group.size(); ++k)
    update(ctx, kSweepFirst + kSweepOperands * k, kSweepResults * k, ctx.inputs[0]->data[0],
           &ctx.inputs[1]->data[at(group[k] * kGroupFields)]);
}

Cost cost_adamw(const OpTypes& t) {
  double elements = 0;
  for (const TensorType& result : t.outputs) elements += static_cast<double>(result.num_elements());
  return cost_of(t, 14 * elements / kSweepResults);
}

}  // namespace

OpGroup optimizer_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "sum_squares",
       .summary = "sum of squares of a tensor",
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_sum_squares,
       .cost = cost_squares,
       .reference = reference_sum_squares,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "sum_squares_sweep",
       .summary = "sums of squares of many tensors",
       .min_inputs = 1,
       .max_inputs = -1,
       .infer = infer_sum_squares_sweep,
       .cost = cost_squares,
       .reference = reference_sum_squares,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "global_norm",
       .summary = "square root of the sum of squares",
       .min_inputs = 1,
       .max_inputs = -1,
       .infer = infer_global_norm,
       .reference = reference_global_norm,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "clip_scale",
       .summary = "min(1, max_norm / (norm + 1e-6))",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {float_attr("max_norm")},
       .infer = infer_clip_scale,
       .reference = reference_clip_scale,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "adamw",
       .summary = "one tensor's update",
       .min_inputs = 6,
       .max_inputs = 6,
       .attrs = {int_attr("group")},
       .infer = infer_adamw,
       .cost = cost_adamw,
       .reference = reference_adamw,
       .autocast = kF32,
       .recompute = kNever,
       .consumes = {{0, 0}, {1, 2}, {2, 3}}},
      {.name = "adamw_sweep",
       .summary = "all tensors' update",
       .min_inputs = 2,
       .max_inputs = -1,
       .attrs = {ints_attr("group")},
       .infer = infer_adamw_sweep,
       .cost = cost_adamw,
       .reference = reference_adamw_sweep,
       .autocast = kF32,
       .recompute = kNever,
       .consumes_variadic = sweep_consumes},
  };
  return kOps;
}

ValueId sum_squares(Builder& b, ValueId x) { return b.op("sum_squares", {x}); }
ValueId global_norm(Builder& b, std::vector<ValueId> squares) {
  return b.op("global_norm", std::move(squares));
}
ValueId clip_scale(Builder& b, ValueId norm, double max_norm) {
  return b.op("clip_scale", {norm}, {{"max_norm", max_norm}});
}

AdamW adamw(Builder& b, ValueId param, ValueId grad, ValueId m, ValueId v, ValueId clip, ValueId groups,
            int64_t group) {
  const auto results = b.ops("adamw", {param, grad, m, v, clip, groups}, {{"group", group}});
  return {results[0], results[1], results[2]};
}

}  // namespace plimsoll::ops
