// Matrix products over leading axes.
#include "ops/batched_matmul.h"

#include "ops/broadcast.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// Rates are those of the product of one pair of matrices, as `linear` is measured.
constexpr std::string_view kKey = "linear";

Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(std::max(0, shape.rank() - 2))));
}

Shape with_matrix(const Shape& lead, int64_t rows, int64_t columns) {
  std::vector<int64_t> extents = extents_of(lead);
  extents.push_back(rows);
  extents.push_back(columns);
  return Shape(std::span<const int64_t>(extents));
}

Result<Types> infer_batched_matmul(const OpTypes& t) {
  Operands in(t, 2, {"a", "b"});
  if (!in) return in.error();
  const Shape &a = t.inputs[0].shape, &b = t.inputs[1].shape;
  in.floating().require(a.rank() >= 2 && b.rank() >= 2, "both want two axes or more", {0, 1});
  if (!in) return in.error();
  const bool ta = t.attrs.flag("transpose_a"), tb = t.attrs.flag("transpose_b");
  in.require(a.dim(ta ? -2 : -1) == b.dim(tb ? -1 : -2), "inner dimensions differ", {0, 1});
  const auto lead = broadcast(leading(a), leading(b));
  in.require(lead.has_value(), "leading axes do not stretch to one shape", {0, 1});
  check_precision(in, t);
  const Shape result = with_matrix(lead.value_or(Shape{}), a.dim(ta ? -1 : -2), b.dim(tb ? -2 : -1));
  return in.results({{out_dtype(in, t, t.inputs[0].dtype), result}});
}

void vjp_batched_matmul(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  const bool ta = op.attrs.flag("transpose_a"), tb = op.attrs.flag("transpose_b");
  const ValueId x = op.inputs[0], y = op.inputs[1];
  const auto give = [&](size_t i, ValueId left, ValueId right, bool transpose_left, bool transpose_right) {
    const TensorType type = b.type(op.inputs[i]);
    ir::Attrs attrs{{"transpose_a", transpose_left}, {"transpose_b", transpose_right}};
    if (const ir::Attr* precision = op.attrs.find("precision")) attrs.set("precision", *precision);
    attrs.set("out", std::string(ir::name(type.dtype)));
    const ValueId product = b.op("batched_matmul", {left, right}, std::move(attrs));
    ctx.add(i, b.type(product).shape == type.shape ? product : sum_to(b, product, type.shape, type.dtype));
  };
  if (ctx.wants(0)) ta ? give(0, y, dy, tb, true) : give(0, dy, y, false, !tb);
  if (ctx.wants(1)) tb ? give(1, dy, x, true, ta) : give(1, x, dy, !ta, false);
}

int64_t inner(const OpTypes& t) { return t.inputs[0].shape.dim(t.attrs.flag("transpose_a") ? -2 : -1); }

Cost cost_batched_matmul(const OpTypes& t) {
  return cost_of(t, 2.0 * static_cast<double>(t.outputs[0].num_elements()) * static_cast<double>(inner(t)));
}

WorkSize size_batched_matmul(const OpTypes& t, double) {
  const Shape& y = t.outputs[0].shape;
  return {kKey,
          {static_cast<double>(y.dim(-2)), static_cast<double>(y.dim(-1)), static_cast<double>(inner(t))}};
}

void reference_batched_matmul(RefContext& ctx) {
  const auto a = operand_of(ctx, *ctx.inputs[0]), b = operand_of(ctx, *ctx.inputs[1]);
  const Shape& result = ctx.outputs[0]->type.shape;
  const Shape lead = leading(result);
  const auto matrices = [&](size_t i) {
    const Shape& shape = ctx.inputs[i]->type.shape;
    return stretched_strides(leading(shape), ir::dense_strides(shape), lead);
  };
  const ir::Strides strides_a = matrices(0), strides_b = matrices(1);
  const bool ta = ctx.op.attrs.flag("transpose_a"), tb = ctx.op.attrs.flag("transpose_b");
  const int64_t m = result.dim(-2), n = result.dim(-1), k = ctx.inputs[0]->type.shape.dim(ta ? -2 : -1);
  for (int64_t i = 0; i < lead.num_elements(); ++i) {
    const int64_t at_a = offset_of(lead, i, strides_a), at_b = offset_of(lead, i, strides_b);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += a[at(at_a + (ta ? p * m + row : row * k + p))] *
                 b[at(at_b + (tb ? column * k + p : p * n + column))];
        ctx.outputs[0]->data[at((i * m + row) * n + column)] = sum;
      }
  }
}

}  // namespace

OpGroup batched_matmul_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "batched_matmul",
       .summary = "products of matrices over leading axes",
       .work = {.kind = WorkKind::kProduct, .keys = {kKey}, .size = size_batched_matmul},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {bool_attr("transpose_a"), bool_attr("transpose_b"), precision_attr(), out_attr()},
       .infer = infer_batched_matmul,
       .vjp = vjp_batched_matmul,
       .cost = cost_batched_matmul,
       .reference = reference_batched_matmul,
       .autocast = ir::AutocastClass::kLowPrecision,
       .recompute = ir::RecomputeClass::kCompute,
       .output_dtypes = {{0, "out", 0}},
       .rounded_operands = 2,
       .takes_any_view = true},
  };
  return kOps;
}

ValueId batched_matmul(Builder& b, ValueId a, ValueId c, bool transpose_a, bool transpose_c) {
  return b.op("batched_matmul", {a, c}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_c}});
}

}  // namespace plimsoll::ops
