// Rows of each sequence, by indices that are data; backward puts them back among zeros.
#include <fmt/format.h>

#include "base/check.h"
#include "ops/operands.h"
#include "ops/structure.h"

namespace plimsoll::ops {
namespace {

/// Rows of each sequence: index is [B], of one, or [B, n].
int64_t rows_of_each(const Shape& index) { return index.rank() == 2 ? index.dim(1) : 1; }
Shape index_shape(const Shape& index, int64_t batch) {
  return index.rank() == 2 ? Shape{batch, index.dim(1)} : Shape{batch};
}

Result<Types> infer_gather_rows(const OpTypes& t) {
  Operands in(t, 2, {"x", "index"});
  if (!in) return in.error();
  const Shape &x = t.inputs[0].shape, &index = t.inputs[1].shape;
  in.floating({}, {1}).require(x.rank() == 3, "x must have three axes", {0});
  in.shaped(1, index_shape(index, x.dim(0)));
  return in.results({{t.inputs[0].dtype, Shape{x.dim(0), rows_of_each(index), x.dim(-1)}}});
}

Result<Types> infer_gather_rows_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "index"});
  if (!in) return in.error();
  const Shape& dy = t.inputs[0].shape;
  in.floating({}, {1});
  const Shape& index = t.inputs[1].shape;
  in.require(dy.rank() == 3 && dy.dim(1) == rows_of_each(index), "dy must have a row for each index", {0, 1});
  in.shaped(1, index_shape(index, dy.dim(0)));
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

/// f(where the row of each index begins in the tensor of all rows, where among the gathered, its width);
/// those of no row are left out.
template <class F>
void for_rows(const Shape& all, const RefTensor& index, F f) {
  const size_t width = at(all.dim(-1)), each = at(rows_of_each(index.type.shape));
  for (size_t i = 0; i < index.data.size(); ++i) {
    const double row = index.data[i];
    if (row == kNoRow) continue;
    PLIMSOLL_CHECK(row >= 0 && row < static_cast<double>(all.dim(1)), "gather_rows: index beyond the rows");
    f((i / each * at(all.dim(1)) + static_cast<size_t>(row)) * width, i * width, width);
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
       .summary = "rows of each sequence by index",
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
