// Gradient norm and clipping before the update: norm of the gradients, a tensor at a time and of all of them
// in one op, and clipping.
#include <algorithm>
#include <cmath>

#include "ops/operands.h"
#include "ops/rounding.h"

namespace plimsoll::ops {
namespace {

std::vector<std::string_view> repeated(std::string_view name, size_t count) {
  return std::vector<std::string_view>(std::max<size_t>(count, 1), name);
}

Result<Types> infer_sum_squares(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  check_short(in, t, "rounded");
  return in.floating().results({{DType::kF32, Shape{1}}});
}

Result<Types> infer_sums_of_squares(const OpTypes& t) {
  Operands in(t, std::max<size_t>(t.inputs.size(), 1), repeated("x", t.inputs.size()));
  if (!in) return in.error();
  check_short(in, t, "rounded");
  return in.floating().results({{DType::kF32, Shape{static_cast<int64_t>(t.inputs.size())}}});
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

double squares_of(const RefTensor& x, std::optional<DType> dtype) {
  double sum = 0;
  for (double v : x.data) {
    if (dtype) v = rounded(v, *dtype);
    sum += v * v;
  }
  return sum;
}

void reference_sum_squares(RefContext& ctx) {
  const auto dtype = dtype_attr(ctx.op.attrs, "rounded");
  for (size_t i = 0; i < ctx.inputs.size(); ++i) ctx.outputs[0]->data[i] = squares_of(*ctx.inputs[i], dtype);
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

}  // namespace

OpGroup optimizer_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  const AttrSpec rounded{"rounded", AttrSpec::Kind::kString, false};
  static const std::vector<OpDef> kOps = {
      {.name = "sum_squares",
       .summary = "sum of squares of a tensor",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {rounded},
       .infer = infer_sum_squares,
       .cost = cost_squares,
       .reference = reference_sum_squares,
       .autocast = kF32,
       .recompute = kNever,
       .multi_tensor = "sum_squares_sweep",
       .reads_gradients = true},
      {.name = "sum_squares_sweep",
       .summary = "sums of squares of many tensors",
       .work = {.kind = WorkKind::kReduction, .is_multi_tensor = true},
       .min_inputs = 1,
       .max_inputs = -1,
       .attrs = {rounded},
       .infer = infer_sums_of_squares,
       .cost = cost_squares,
       .reference = reference_sum_squares,
       .autocast = kF32,
       .recompute = kNever,
       .reads_gradients = true},
      {.name = "global_norm",
       .summary = "square root of the sum of squares",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = -1,
       .infer = infer_global_norm,
       .reference = reference_global_norm,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "clip_scale",
       .summary = "min(1, max_norm / (norm + 1e-6))",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {float_attr("max_norm")},
       .infer = infer_clip_scale,
       .reference = reference_clip_scale,
       .autocast = kF32,
       .recompute = kNever},
  };
  return kOps;
}

ValueId sum_squares(Builder& b, ValueId x, DType rounded) {
  ir::Attrs attrs;
  if (rounded != DType::kF32 && b.type(x).dtype != rounded)
    attrs.set("rounded", std::string(ir::name(rounded)));
  return b.op("sum_squares", {x}, std::move(attrs));
}
ValueId global_norm(Builder& b, std::vector<ValueId> squares) {
  return b.op("global_norm", std::move(squares));
}
ValueId clip_scale(Builder& b, ValueId norm, double max_norm) {
  return b.op("clip_scale", {norm}, {{"max_norm", max_norm}});
}

}  // namespace plimsoll::ops
