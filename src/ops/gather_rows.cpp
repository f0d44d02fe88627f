// One row of each sequence, by an index that is data; backward puts it back among zeros.
#include <fmt/format.h>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_gather_rows(const OpTypes& t) {
  Operands in(t, 2, {"x", "index"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating({}, {1}).require(x.rank() == 3, "x must have three axes", {0}).shaped(1, Shape{x.dim(0)});
  return in.results({{t.inputs[0].dtype, Shape{x.dim(0), 1, x.dim(-1)}}});
}

Result<Types> infer_gather_rows_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "index"});
  if (!in) return in.error();
  const Shape& dy = t.inputs[0].shape;
  in.floating({}, {1});
  in.require(dy.rank() == 3 && dy.dim(1) == 1, "dy must have one row a sequence", {0});
  in.shaped(1, Shape{dy.dim(0)});
  const int64_t rows = t.attrs.i64("rows");
  const auto x = shape_of({dy.dim(0), rows, dy.dim(-1)});
  in.require(x.has_value(), fmt::format("rows {} out of range", rows));
  return in.results({{t.inputs[0].dtype, x.value_or(Shape{1})}});
}

void vjp_gather_rows(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  const int64_t rows = ctx.builder().type(op.inputs[0]).shape.dim(1);
  ctx.add(0, ctx.builder().op("gather_rows_grad", {dy, op.inputs[1]}, {{"rows", rows}}));
}

/// f(where the row of sequence b begins in the tensor of all rows, where among the gathered).
template <class F>
void for_rows(const Shape& all, const RefTensor& index, F f) {
  const size_t width = at(all.dim(-1));
  for (size_t b = 0; b < index.data.size(); ++b) {
    const double row = index.data[b];
    PLIMSOLL_CHECK(row >= 0 && row < static_cast<double>(all.dim(1)), "gather_rows: index beyond the rows");
    f((b * at(all.dim(1)) + static_cast<size_t>(row)) * width, b * width, width);
  }
}

void reference_gather_rows(RefContext& ctx) {
  for_rows(ctx.inputs[0]->type.shape, *ctx.inputs[1], [&](size_t from, size_t to, size_t width) {
    for (size_t i = 0; i < width; ++i) ctx.outputs[0]->data[to + i] = ctx.inputs[0]->data[from + i];
  });
}

void reference_gather_rows_grad(RefContext& ctx) {
  for_rows(ctx.outputs[0]->type.shape, *ctx.inputs[1], [&](size_t to, size_t from, size_t width) {
    for (size_t i = 0; i < width; ++i) ctx.outputs[0]->data[to + i] = ctx.inputs[0]->data[from + i];
  });
}

// The gathered rows cross memory, not x.
Cost cost_gather_rows(const OpTypes& t) {
  return {0, 2.0 * static_cast<double>(t.outputs[0].bytes().count) +
                 static_cast<double>(t.inputs[1].bytes().count)};
}

}  // namespace

OpGroup gather_rows_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "gather_rows",
       .summary = "one row of each sequence by index",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_gather_rows,
       .vjp = vjp_gather_rows,
       .cost = cost_gather_rows,
       .reference = reference_gather_rows,
       .recompute = kNearlyFree,
       .elements = ir::Elements::kRows},
      {.name = "gather_rows_grad",
       .summary = "the rows among zeros",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("rows")},
       .infer = infer_gather_rows_grad,
       .reference = reference_gather_rows_grad,
       .recompute = kNearlyFree},
  };
  return kOps;
}

ValueId gather_rows(Builder& b, ValueId x, ValueId index) { return b.op("gather_rows", {x, index}); }

}  // namespace plimsoll::ops
