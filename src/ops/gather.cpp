// torch.gather and its sum back.
#include "ops/gather.h"

#include <fmt/format.h>

#include "base/check.h"
#include "ops/broadcast.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// Whether index picks from x along that axis.
void check_gather(Operands& in, const OpTypes& t, const Shape& x) {
  const int64_t axis = t.attrs.i64("axis");
  const Shape& index = t.inputs[1].shape;
  bool fits = axis >= 0 && axis < x.rank() && index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.dim(i) <= x.dim(i);
  in.require(fits, fmt::format("index does not fit x along axis {}", axis), {0, 1});
}

Result<Types> infer_gather(const OpTypes& t) {
  Operands in(t, 2, {"x", "index"});
  if (!in) return in.error();
  check_gather(in.floating({}, {1}), t, t.inputs[0].shape);
  return in.results({{t.inputs[0].dtype, t.inputs[1].shape}});
}

Result<Types> infer_gather_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "index"});
  if (!in) return in.error();
  const auto shape = shape_of(t.attrs.ints("shape"));
  in.floating({}, {1}).shaped(1, t.inputs[0].shape);
  in.require(shape.has_value(), "shape must be of 1 to 6 positive extents");
  check_gather(in, t, shape.value_or(Shape{1}));
  return in.results({{t.inputs[0].dtype, shape.value_or(Shape{1})}});
}

void vjp_gather(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  if (!ctx.cotangent(0).valid() || !ctx.wants(0)) return;
  ctx.add(0, b.op("gather_grad", {ctx.cotangent(0), op.inputs[1]},
                  {{"axis", op.attrs.i64("axis")}, {"shape", extents_of(b.type(op.inputs[0]).shape)}}));
}

/// f(place in x, place in index) for each element of index.
template <class F>
void for_gathered(const Shape& x, const RefTensor& index, int axis, F f) {
  ir::Strides strides = ir::dense_strides(x);
  const int64_t step = strides[at(axis)];
  strides[at(axis)] = 0;
  for (int64_t i = 0; i < index.type.num_elements(); ++i) {
    const double picked = index.data[at(i)];
    PLIMSOLL_CHECK(picked >= 0 && picked < static_cast<double>(x.dim(axis)), "gather: index beyond the axis");
    f(at(offset_of(index.type.shape, i, strides) + static_cast<int64_t>(picked) * step), at(i));
  }
}

void reference_gather(RefContext& ctx) {
  for_gathered(ctx.inputs[0]->type.shape, *ctx.inputs[1], static_cast<int>(ctx.op.attrs.i64("axis")),
               [&](size_t from, size_t to) { ctx.outputs[0]->data[to] = ctx.inputs[0]->data[from]; });
}
void reference_gather_grad(RefContext& ctx) {
  for_gathered(ctx.outputs[0]->type.shape, *ctx.inputs[1], static_cast<int>(ctx.op.attrs.i64("axis")),
               [&](size_t to, size_t from) { ctx.outputs[0]->data[to] += ctx.inputs[0]->data[from]; });
}

}  // namespace

OpGroup gather_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "gather",
       .summary = "elements along an axis by index",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("axis")},
       .infer = infer_gather,
       .vjp = vjp_gather,
       .reference = reference_gather,
       .recompute = kNearlyFree},
      {.name = "gather_grad",
       .summary = "sums of the gathered elements' cotangents",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("axis"), ints_attr("shape")},
       .infer = infer_gather_grad,
       .reference = reference_gather_grad,
       .recompute = kNearlyFree},
  };
  return kOps;
}

ValueId gather(Builder& b, ValueId x, ValueId index, int64_t axis) {
  return b.op("gather", {x, index}, {{"axis", axis}});
}

}  // namespace plimsoll::ops
