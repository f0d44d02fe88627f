// Rotary positions in the half-split layout of Hugging Face: the table of angles, the turn of each head, and
// the turn of the first heads of a packed q/k/v row. Source: Su et al. 2021, arXiv:2104.09864.
#include <fmt/format.h>

#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

// ---- the table
// -----------------------------------------------------------------------------------------------------

Result<Types> infer_rope_table(const OpTypes& t) {
  Operands in(t, 1, {"inv_freq", "positions"});
  if (!in) return in.error();
  const int64_t tokens = t.attrs.i64("tokens");
  in.dtypes(DType::kF32, {1}).require(t.inputs[0].shape.rank() == 1, "inv_freq must have one axis", {0});
  int64_t batch = 1;
  if (t.has(1)) {
    const Shape& positions = t.inputs[1].shape;
    in.require(positions.rank() == 2 && positions.dim(1) == tokens,
               fmt::format("positions must be [B,{}]", tokens), {1});
    batch = positions.dim(0);
  }
  const auto shape = shape_of({batch, tokens, 2 * t.inputs[0].shape.dim(0)});
  in.require(shape.has_value(), fmt::format("tokens {} out of range", tokens));
  return in.results({{DType::kF32, shape.value_or(Shape{1})}});
}

Cost cost_rope_table(const OpTypes& t) {
  return cost_of(t, 30.0 * static_cast<double>(t.outputs[0].num_elements()));
}

void reference_rope_table(RefContext& ctx) {
  const auto& inv_freq = ctx.inputs[0]->data;
  const RefTensor* positions = ctx.inputs.size() > 1 ? ctx.inputs[1] : nullptr;
  const double factor = ctx.op.attrs.f64("factor");
  const size_t half = inv_freq.size();
  for (size_t row = 0; row < ctx.outputs[0]->data.size() / (2 * half); ++row) {
    const double position = positions != nullptr ? positions->data[row] : static_cast<double>(row);
    for (size_t i = 0; i < half; ++i) {
      ctx.outputs[0]->data[row * 2 * half + i] = std::cos(position * inv_freq[i]) * factor;
      ctx.outputs[0]->data[row * 2 * half + half + i] = std::sin(position * inv_freq[i]) * factor;
    }
  }
}

// ---- the turn
// ------------------------------------------------------------------------------------------------------

/// The table suits x [B, T, ...] with heads of `head_dim`.
void check_table(Operands& in, const Shape& x, const Shape& table, int64_t head_dim) {
  in.require(table.rank() == 3 && (table.dim(0) == x.dim(0) || table.dim(0) == 1) &&
                 table.dim(1) == x.dim(1) && table.dim(2) == head_dim && head_dim % 2 == 0,
             fmt::format("table must be [B or 1, T, {}], an even head size", head_dim), {0, 1});
}

Result<Types> infer_rope(const OpTypes& t) {
  Operands in(t, 2, {"x", "table"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating({1}).require(x.rank() == 4, "x must be [B,T,heads,head_dim]", {0});
  check_table(in, x, t.inputs[1].shape, x.dim(-1));
  return in.results({t.inputs[0]});
}

Result<Types> infer_rope_packed(const OpTypes& t) {
  Operands in(t, 2, {"x", "table"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const int64_t heads = t.attrs.i64("heads");
  const int64_t head_dim = t.attrs.i64("head_dim");
  in.floating({1}).require(x.rank() == 3, "x must be [B,T,heads*head_dim]", {0});
  in.require(heads >= 1 && head_dim >= 2 && x.dim(2) % head_dim == 0 && heads <= x.dim(2) / head_dim,
             fmt::format("x does not hold {} heads of {}", heads, head_dim), {0});
  check_table(in, x, t.inputs[1].shape, head_dim);
  return in.results({t.inputs[0]});
}

/// Turning back is the transpose of turning; the table is data and has no cotangent.
void vjp_turn(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  ir::Attrs attrs = op.attrs;
  attrs.set("inverse", !op.attrs.flag("inverse"));
  ctx.add(0, ctx.builder().op(op.def->name, {dy, op.inputs[1]}, std::move(attrs)));
}

void turn_head(const double* x, const double* angles, size_t half, double sign, double* y) {
  for (size_t i = 0; i < half; ++i) {
    const double c = angles[i];
    const double s = sign * angles[half + i];
    y[i] = x[i] * c - x[half + i] * s;
    y[half + i] = x[half + i] * c + x[i] * s;
  }
}

/// The first `turned` of `heads` heads of each token.
void turn(RefContext& ctx, size_t heads, size_t turned) {
  const RefTensor& table = *ctx.inputs[1];
  const size_t head_dim = at(table.type.shape.dim(2));
  const size_t table_rows = at(table.type.shape.num_rows());
  const double sign = ctx.op.attrs.flag("inverse") ? -1.0 : 1.0;
  ctx.outputs[0]->data = ctx.inputs[0]->data;
  for (size_t row = 0; row < ctx.inputs[0]->data.size() / (heads * head_dim); ++row)
    for (size_t h = 0; h < turned; ++h) {
      const size_t start = (row * heads + h) * head_dim;
      turn_head(&ctx.inputs[0]->data[start], &table.data[row % table_rows * head_dim], head_dim / 2, sign,
                &ctx.outputs[0]->data[start]);
    }
}

void reference_rope(RefContext& ctx) {
  const size_t heads = at(ctx.inputs[0]->type.shape.dim(2));
  turn(ctx, heads, heads);
}

void reference_rope_packed(RefContext& ctx) {
  const int64_t heads = ctx.inputs[0]->type.shape.dim(2) / ctx.op.attrs.i64("head_dim");
  turn(ctx, at(heads), at(ctx.op.attrs.i64("heads")));
}

}  // namespace

OpGroup rope_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "rope_table",
       .summary = "cosines and sines of the positions' angles",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 2,
       .attrs = {int_attr("tokens"), float_attr("factor")},
       .infer = infer_rope_table,
       .cost = cost_rope_table,
       .reference = reference_rope_table,
       .autocast = ir::AutocastClass::kF32,
       .recompute = kNearlyFree},
      {.name = "rope",
       .summary = "turns every head",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {bool_attr("inverse")},
       .infer = infer_rope,
       .vjp = vjp_turn,
       .cost = elementwise_cost<3>,
       .reference = reference_rope,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "rope_packed",
       .summary = "turns the first heads of packed rows",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("heads"), int_attr("head_dim"), bool_attr("inverse")},
       .infer = infer_rope_packed,
       .vjp = vjp_turn,
       .cost = elementwise_cost<3>,
       .reference = reference_rope_packed,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
  };
  return kOps;
}

ValueId rope_table(Builder& b, ValueId inv_freq, ValueId positions, int64_t tokens, double factor) {
  return b.op("rope_table", trimmed({inv_freq, positions}), {{"tokens", tokens}, {"factor", factor}});
}

ValueId rope(Builder& b, ValueId x, ValueId table) { return b.op("rope", {x, table}, {{"inverse", false}}); }

}  // namespace plimsoll::ops
