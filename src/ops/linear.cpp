// Linear layers: the matrix product, the one that is added to columns of another, its weight gradient, and
// the sum over rows that is a bias's gradient.
#include <algorithm>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

double macs(const Shape& rows_of, int64_t in, int64_t out) {
  return static_cast<double>(rows_of.num_rows()) * static_cast<double>(in) * static_cast<double>(out);
}

constexpr std::string_view kForwardKey = "linear", kTransposedKey = "linear_t", kWeightKey = "linear_dw";

WorkSize product_size(std::string_view key, const Shape& rows_of, int64_t columns, double flops) {
  const double m = std::max(1.0, static_cast<double>(rows_of.num_rows())), n = static_cast<double>(columns);
  return {key, {m, n, std::max(1.0, flops / (2 * m * n))}};
}

std::string_view forward_key(const OpTypes& t) {
  return t.attrs.flag("transposed") ? kTransposedKey : kForwardKey;
}

// ---- linear
// ------------------------------------------------------------------------------------------------------

Result<Types> infer_linear(const OpTypes& t) {
  Operands in(t, 2, {"x", "weight", "bias"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const Shape& weight = t.inputs[1].shape;
  const bool transposed = t.attrs.flag("transposed");
  in.floating({}, {}, {1}).require(weight.rank() == 2, "weight must have two axes", {1});
  const int64_t inner = weight.dim(transposed ? 0 : 1);
  const int64_t outer = weight.dim(transposed ? 1 : 0);
  in.require(x.dim(-1) == inner, "inner dimensions differ", {0, 1}).shaped(2, Shape{outer});
  check_precision(in, t);
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), with_last(x, outer)}});
}

/// Gradients of operands 0 and 1 by `dy`, that of their product: each of its operand's dtype, the products of
/// the forward map's precision.
void add_product_grads(VjpContext& ctx, const Op& op, ValueId dy) {
  Builder& b = ctx.builder();
  const auto attrs = [&](bool transposed, DType out, DType otherwise) {
    ir::Attrs a{{"transposed", transposed}};
    if (const ir::Attr* precision = op.attrs.find("precision")) a.set("precision", *precision);
    if (op.attrs.flag("fp8")) a.set("fp8", true);
    if (out != otherwise) a.set("out", std::string(ir::name(out)));
    return a;
  };
  const bool transposed = op.attrs.flag("transposed");
  const DType x = b.type(op.inputs[0]).dtype, weight = b.type(op.inputs[1]).dtype;
  if (ctx.wants(0)) ctx.add(0, b.op("linear", {dy, op.inputs[1]}, attrs(!transposed, x, b.type(dy).dtype)));
  if (ctx.wants(1)) ctx.add(1, b.op("linear_dw", {op.inputs[0], dy}, attrs(transposed, weight, DType::kF32)));
}

void vjp_linear(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  add_product_grads(ctx, op, dy);
  if (op.inputs.size() > 2 && op.inputs[2].valid() && ctx.wants(2))
    ctx.add(2, b.op("sum_rows", {dy}, with_out({}, b.type(op.inputs[2]).dtype)));
}

Cost cost_linear(const OpTypes& t) {
  return cost_of(t, 2 * macs(t.inputs[0].shape, t.inputs[0].shape.dim(-1), t.outputs[0].shape.dim(-1)));
}

WorkSize size_linear(const OpTypes& t, double flops) {
  return product_size(forward_key(t), t.outputs[0].shape, t.outputs[0].shape.dim(-1), flops);
}

void reference_linear(RefContext& ctx) {
  const auto x = operand_of(ctx, *ctx.inputs[0]), weight = operand_of(ctx, *ctx.inputs[1]);
  const bool transposed = ctx.op.attrs.flag("transposed");
  const bool has_bias = ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr;
  const size_t in = at(ctx.inputs[0]->type.shape.dim(-1));
  const size_t out = at(ctx.outputs[0]->type.shape.dim(-1));
  for (size_t row = 0; row < x.size() / in; ++row)
    for (size_t o = 0; o < out; ++o) {
      double sum = 0;
      for (size_t i = 0; i < in; ++i) sum += x[row * in + i] * weight[transposed ? i * out + o : o * in + i];
      ctx.outputs[0]->data[row * out + o] = has_bias ? sum + ctx.inputs[2]->data[o] : sum;
    }
}

// ---- linear_add
// --------------------------------------------------------------------------------------------------

Result<Types> infer_linear_add(const OpTypes& t) {
  Operands in(t, 3, {"x", "weight", "base"});
  if (!in) return in.error();
  const Shape &x = t.inputs[0].shape, &weight = t.inputs[1].shape, &base = t.inputs[2].shape;
  const bool transposed = t.attrs.flag("transposed");
  in.floating().require(weight.rank() == 2, "weight must have two axes", {1});
  const int64_t inner = weight.dim(transposed ? 0 : 1), outer = weight.dim(transposed ? 1 : 0);
  in.require(x.dim(-1) == inner, "inner dimensions differ", {0, 1});
  in.require(with_last(x, 1) == with_last(base, 1), "rows differ", {0, 2});
  const int64_t column = t.attrs.i64("column");
  in.require(column >= 0 && outer <= base.dim(-1) && column <= base.dim(-1) - outer,
             "columns beyond the base", {1, 2});
  check_precision(in, t);
  return in.results({t.inputs[2]});
}

/// The columns of dy that x and weight have a part in.
ValueId columns_of(Builder& b, ValueId dy, int64_t column, int64_t width) {
  const int64_t rest = b.type(dy).shape.dim(-1) - column - width;
  std::vector<int64_t> sizes;
  if (column > 0) sizes.push_back(column);
  sizes.push_back(width);
  if (rest > 0) sizes.push_back(rest);
  return sizes.size() == 1 ? dy : split(b, dy, std::move(sizes))[column > 0 ? 1 : 0];
}

void vjp_linear_add(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(2)) ctx.add(2, dy);
  if (!ctx.wants(0) && !ctx.wants(1)) return;
  const int64_t width = b.type(op.inputs[1]).shape.dim(op.attrs.flag("transposed") ? 1 : 0);
  add_product_grads(ctx, op, columns_of(b, dy, op.attrs.i64("column"), width));
}

/// Of the base its columns alone, which are read and written.
Cost cost_linear_add(const OpTypes& t) {
  const TensorType &x = t.inputs[0], &weight = t.inputs[1];
  const int64_t outer = weight.shape.dim(t.attrs.flag("transposed") ? 1 : 0);
  const double columns = static_cast<double>(t.outputs[0].bytes().count) * static_cast<double>(outer) /
                         static_cast<double>(t.outputs[0].shape.dim(-1));
  return {.flops = 2 * macs(x.shape, x.shape.dim(-1), outer),
          .bytes = static_cast<double>(x.bytes().count + weight.bytes().count) + 2 * columns};
}

/// It writes no more columns than those that it is added to.
WorkSize size_linear_add(const OpTypes& t, double flops) {
  const int64_t columns = t.inputs[1].shape.dim(t.attrs.flag("transposed") ? 1 : 0);
  return product_size(forward_key(t), t.outputs[0].shape, columns, flops);
}

void reference_linear_add(RefContext& ctx) {
  const auto x = operand_of(ctx, *ctx.inputs[0]), weight = operand_of(ctx, *ctx.inputs[1]);
  const bool transposed = ctx.op.attrs.flag("transposed");
  const size_t in = at(ctx.inputs[0]->type.shape.dim(-1)), width = at(ctx.outputs[0]->type.shape.dim(-1));
  const size_t out = weight.size() / in, column = at(ctx.op.attrs.i64("column"));
  ctx.outputs[0]->data = ctx.inputs[2]->data;
  for (size_t row = 0; row < x.size() / in; ++row)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i)
        ctx.outputs[0]->data[row * width + column + o] +=
            x[row * in + i] * weight[transposed ? i * out + o : o * in + i];
}

// ---- linear_dw
// ---------------------------------------------------------------------------------------------------

Result<Types> infer_linear_dw(const OpTypes& t) {
  Operands in(t, 2, {"x", "dy", "acc"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const Shape& dy = t.inputs[1].shape;
  in.floating().require(with_last(x, 1) == with_last(dy, 1), "rows differ", {0, 1});
  check_precision(in, t);
  const Shape weight =
      t.attrs.flag("transposed") ? Shape{x.dim(-1), dy.dim(-1)} : Shape{dy.dim(-1), x.dim(-1)};
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(2, weight).same_dtype(2, DType::kF32);
  in.require(!t.has(2) || dtype == DType::kF32, "a gradient is accumulated in f32");
  return in.results({{dtype, weight}});
}

Cost cost_linear_dw(const OpTypes& t) {
  return cost_of(t, 2 * macs(t.inputs[0].shape, t.inputs[0].shape.dim(-1), t.inputs[1].shape.dim(-1)));
}

WorkSize size_linear_dw(const OpTypes& t, double flops) {
  return product_size(kWeightKey, t.outputs[0].shape, t.outputs[0].shape.dim(-1), flops);
}

/// Columns of dy are rows of the gradient of a weight [out, in].
int columns_of_linear_dw(const ir::Attrs& attrs) { return attrs.flag("transposed") ? -1 : 1; }

void reference_linear_dw(RefContext& ctx) {
  const auto x = operand_of(ctx, *ctx.inputs[0]), dy = operand_of(ctx, *ctx.inputs[1]);
  const bool transposed = ctx.op.attrs.flag("transposed");
  const size_t in = at(ctx.inputs[0]->type.shape.dim(-1));
  const size_t out = at(ctx.inputs[1]->type.shape.dim(-1));
  if (ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr) ctx.outputs[0]->data = ctx.inputs[2]->data;
  for (size_t row = 0; row < x.size() / in; ++row)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i)
        ctx.outputs[0]->data[transposed ? i * out + o : o * in + i] += x[row * in + i] * dy[row * out + o];
}

// ---- sum_rows
// ----------------------------------------------------------------------------------------------------

Result<Types> infer_sum_rows(const OpTypes& t) {
  Operands in(t, 1, {"dy", "acc"});
  if (!in) return in.error();
  const Shape row{t.inputs[0].shape.dim(-1)};
  const DType dtype = out_dtype(in.floating(), t, DType::kF32);
  return in.shaped(1, row).same_dtype(1, dtype).results({{dtype, row}});
}

/// Every row of the gradient is that of the sum.
void vjp_sum_rows(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (op.inputs.size() > 1 && op.inputs[1].valid() && ctx.wants(1)) ctx.add(1, dy);
  if (!ctx.wants(0)) return;
  const auto dims = b.type(op.inputs[0]).shape.dims();
  ctx.add(0, bias_add(b, fill(b, {dims.begin(), dims.end()}, -0.0), dy));
}

Cost cost_sum_rows(const OpTypes& t) { return cost_of(t, static_cast<double>(t.inputs[0].num_elements())); }

void reference_sum_rows(RefContext& ctx) {
  auto& sums = ctx.outputs[0]->data;
  if (ctx.inputs.size() > 1 && ctx.inputs[1] != nullptr) sums = ctx.inputs[1]->data;
  for (size_t i = 0; i < ctx.inputs[0]->data.size(); ++i) sums[i % sums.size()] += ctx.inputs[0]->data[i];
}

}  // namespace

OpGroup linear_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  const ir::Work product = {
      .kind = WorkKind::kProduct, .keys = {kForwardKey, kTransposedKey}, .size = size_linear};
  static const std::vector<OpDef> kOps = {
      {.name = "linear",
       .summary = "x times weight, plus bias",
       .work = product,
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {bool_attr("transposed"), bool_attr("fp8"), precision_attr(), out_attr()},
       .infer = infer_linear,
       .vjp = vjp_linear,
       .cost = cost_linear,
       .reference = reference_linear,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
      {.name = "linear_few",
       .summary = "linear of few rows, for generation",
       .work = product,
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {bool_attr("transposed"), precision_attr(), out_attr()},
       .infer = infer_linear,
       .cost = cost_linear,
       .reference = reference_linear,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2},
      {.name = "linear_add",
       .summary = "x times weight, added to columns of another result",
       .work = {.kind = WorkKind::kProduct, .keys = product.keys, .size = size_linear_add},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {int_attr("column"), bool_attr("transposed"), precision_attr()},
       .infer = infer_linear_add,
       .vjp = vjp_linear_add,
       .cost = cost_linear_add,
       .reference = reference_linear_add,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .in_place = {{0, 2}},
       .rounded_operands = 2},
      {.name = "linear_dw",
       .summary = "weight gradient of linear",
       .work = {.kind = WorkKind::kProduct, .keys = {kWeightKey}, .size = size_linear_dw},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {bool_attr("transposed"), bool_attr("fp8"), precision_attr(), out_attr()},
       .infer = infer_linear_dw,
       .cost = cost_linear_dw,
       .reference = reference_linear_dw,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .accumulators = {{0, 2}},
       .output_dtypes = {{0, "out"}},
       .rounded_operands = 2,
       .columns_to_rows = columns_of_linear_dw},
      {.name = "sum_rows",
       .summary = "sum over all axes but the last",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 2,
       .attrs = {out_attr()},
       .infer = infer_sum_rows,
       .vjp = vjp_sum_rows,
       .cost = cost_sum_rows,
       .reference = reference_sum_rows,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{0, 1}},
       .output_dtypes = {{0, "out"}},
       .columns_to_rows = [](const ir::Attrs&) { return 0; }},
  };
  return kOps;
}

ValueId linear(Builder& b, ValueId x, ValueId weight, ValueId bias, bool transposed) {
  return b.op("linear", trimmed({x, weight, bias}), {{"transposed", transposed}});
}

ValueId linear_add(Builder& b, ValueId x, ValueId weight, ValueId base, int64_t column) {
  return b.op("linear_add", {x, weight, base}, {{"column", column}, {"transposed", false}});
}

}  // namespace plimsoll::ops
