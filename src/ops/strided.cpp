// Views by strides, and what puts their gradients back.
#include "ops/strided.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/broadcast.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

using ir::ViewPlace;

/// Axes of one element have any stride; they get that of a dense tensor, so that one is known as such.
ViewPlace view_at(int64_t offset, ir::Strides strides, const Shape& shape) {
  int64_t dense = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape.dim(i) == 1) strides[at(i)] = dense;
    dense *= shape.dim(i);
  }
  return {offset, strides};
}

/// Fills the result with the elements that a view shows.
void reference_view(RefContext& ctx) {
  const Op& op = ctx.op;
  const Shape &x = ctx.inputs[0]->type.shape, &y = ctx.outputs[0]->type.shape;
  const OpTypes types{op.def->name, {ctx.inputs[0]->type}, {ctx.outputs[0]->type}, op.attrs};
  const ViewPlace place = *op.def->view(types, ir::dense_strides(x), 0);
  for (int64_t i = 0; i < y.num_elements(); ++i)
    ctx.outputs[0]->data[at(i)] = ctx.inputs[0]->data[at(place.offset + offset_of(y, i, place.strides))];
}

// ---- permute
// -----------------------------------------------------------------------------------------------------

Result<Types> infer_permute(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const TensorType& x = t.inputs[0];
  const auto& axes = t.attrs.ints("axes");
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool each_once = axes.size() == static_cast<size_t>(x.shape.rank());
  for (size_t i = 0; each_once && i < sorted.size(); ++i) each_once = sorted[i] == static_cast<int64_t>(i);
  in.require(each_once && !ir::is_block(x.dtype), "axes must name each axis of x once", {0});
  if (!in) return in.error();
  TensorType y = x;
  for (size_t i = 0; i < axes.size(); ++i)
    y.shape.set_dim(static_cast<int>(i), x.shape.dim(static_cast<int>(axes[i])));
  return in.results({y});
}

void vjp_permute(VjpContext& ctx) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid() || !ctx.wants(0)) return;
  const auto& axes = op.attrs.ints("axes");
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[at(axes[i])] = static_cast<int64_t>(i);
  ctx.add(0, permute(ctx.builder(), ctx.cotangent(0), std::move(back)));
}

std::optional<ViewPlace> view_permute(const OpTypes& t, const ir::Strides& strides, size_t) {
  const auto& axes = t.attrs.ints("axes");
  ir::Strides permuted{};
  for (size_t i = 0; i < axes.size(); ++i) permuted[i] = strides[at(axes[i])];
  return view_at(0, permuted, t.outputs[0].shape);
}

// ---- expand
// ------------------------------------------------------------------------------------------------------

Result<Types> infer_expand(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const TensorType& x = t.inputs[0];
  const auto shape = shape_of(t.attrs.ints("shape"));
  in.require(shape && stretches_to(x.shape, *shape) && !ir::is_block(x.dtype),
             fmt::format("x does not stretch to {}", to_string(shape.value_or(Shape{}))), {0});
  return in.results({{x.dtype, shape.value_or(Shape{1})}});
}

void vjp_expand(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  if (!ctx.cotangent(0).valid() || !ctx.wants(0)) return;
  const TensorType x = b.type(op.inputs[0]);
  ctx.add(0, sum_to(b, ctx.cotangent(0), x.shape, x.dtype));
}

std::optional<ViewPlace> view_expand(const OpTypes& t, const ir::Strides& strides, size_t) {
  const Shape& shape = t.outputs[0].shape;
  return view_at(0, stretched_strides(t.inputs[0].shape, strides, shape), shape);
}

// ---- slice, flip
// -------------------------------------------------------------------------------------------------

Operands& check_axis(Operands& in, const OpTypes& t) {
  const int64_t axis = t.attrs.i64("axis");
  return in.require(axis >= 0 && axis < t.inputs[0].shape.rank() && !ir::is_block(t.inputs[0].dtype),
                    fmt::format("there is no axis {}", axis), {0});
}

/// Whether start, start + step, ... of `size` elements lie within `extent`.
bool lies_within(int64_t start, int64_t size, int64_t step, int64_t extent) {
  return start >= 0 && start < extent && size >= 1 && step >= 1 && (size - 1) <= (extent - 1 - start) / step;
}

Result<Types> infer_slice(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in || !check_axis(in, t)) return in.error();
  const int axis = static_cast<int>(t.attrs.i64("axis"));
  TensorType y = t.inputs[0];
  const int64_t start = t.attrs.i64("start"), size = t.attrs.i64("size"), step = t.attrs.i64("step");
  in.require(lies_within(start, size, step, y.shape.dim(axis)),
             fmt::format("start {}, size {}, step {} reach beyond axis {}", start, size, step, axis), {0});
  y.shape.set_dim(axis, size);
  return in.results({y});
}

void vjp_slice(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  if (!ctx.cotangent(0).valid() || !ctx.wants(0)) return;
  const int64_t axis = op.attrs.i64("axis");
  ctx.add(0, b.op("slice_grad", {ctx.cotangent(0)},
                  {{"axis", axis},
                   {"start", op.attrs.i64("start")},
                   {"step", op.attrs.i64("step")},
                   {"extent", b.type(op.inputs[0]).shape.dim(static_cast<int>(axis))}}));
}

std::optional<ViewPlace> view_slice(const OpTypes& t, const ir::Strides& strides, size_t) {
  const auto axis = at(t.attrs.i64("axis"));
  ir::Strides sliced = strides;
  if (t.attrs.i64("size") > 1) sliced[axis] *= t.attrs.i64("step");  // of one element any step fits
  return view_at(t.attrs.i64("start") * strides[axis], sliced, t.outputs[0].shape);
}

Result<Types> infer_slice_grad(const OpTypes& t) {
  Operands in(t, 1, {"dy"});
  if (!in || !check_axis(in, t)) return in.error();
  const int axis = static_cast<int>(t.attrs.i64("axis"));
  TensorType x = t.inputs[0];
  const int64_t extent = t.attrs.i64("extent");
  in.require(extent >= 1 && extent <= ir::kMaxElements, "extent out of range");
  in.require(lies_within(t.attrs.i64("start"), x.shape.dim(axis), t.attrs.i64("step"), extent),
             "dy reaches beyond extent", {0});
  x.shape.set_dim(axis, std::clamp<int64_t>(extent, 1, ir::kMaxElements));
  return in.floating().results({x});
}

void reference_slice_grad(RefContext& ctx) {
  const auto axis = at(ctx.op.attrs.i64("axis"));
  const Shape &dy = ctx.inputs[0]->type.shape, &x = ctx.outputs[0]->type.shape;
  ir::Strides strides = ir::dense_strides(x);
  const int64_t first = ctx.op.attrs.i64("start") * strides[axis];
  if (dy.dim(static_cast<int>(axis)) > 1) strides[axis] *= ctx.op.attrs.i64("step");
  for (int64_t i = 0; i < dy.num_elements(); ++i)
    ctx.outputs[0]->data[at(first + offset_of(dy, i, strides))] = ctx.inputs[0]->data[at(i)];
}

Result<Types> infer_flip(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in || !check_axis(in, t)) return in.error();
  return in.results({t.inputs[0]});
}

void vjp_flip(VjpContext& ctx) {
  const Op op = ctx.op();
  if (ctx.cotangent(0).valid() && ctx.wants(0))
    ctx.add(0, flip(ctx.builder(), ctx.cotangent(0), op.attrs.i64("axis")));
}

void reference_flip(RefContext& ctx) {
  const auto axis = at(ctx.op.attrs.i64("axis"));
  const Shape& x = ctx.inputs[0]->type.shape;
  ir::Strides strides = ir::dense_strides(x);
  const int64_t last = (x.dim(static_cast<int>(axis)) - 1) * strides[axis];
  strides[axis] = -strides[axis];
  for (int64_t i = 0; i < x.num_elements(); ++i)
    ctx.outputs[0]->data[at(last + offset_of(x, i, strides))] = ctx.inputs[0]->data[at(i)];
}

// ---- detach
// ------------------------------------------------------------------------------------------------------

Result<Types> infer_detach(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  return in ? in.results({t.inputs[0]}) : in.error();
}
/// That it adds nothing is what the op is for.
void vjp_detach(VjpContext&) {}
std::optional<ViewPlace> view_detach(const OpTypes&, const ir::Strides& strides, size_t) {
  return ViewPlace{0, strides};
}

OpDef view_def(std::string_view name, std::string_view summary, std::vector<AttrSpec> attrs) {
  return {.name = name,
          .summary = summary,
          .work = {WorkKind::kNone},
          .min_inputs = 1,
          .max_inputs = 1,
          .attrs = std::move(attrs),
          .recompute = ir::RecomputeClass::kNearlyFree,
          .elements = ir::Elements::kSame,
          .is_view = true};
}

std::vector<OpDef> make_ops() {
  OpDef permute = view_def("permute", "the same elements, axes in another order", {ints_attr("axes")});
  permute.infer = infer_permute, permute.vjp = vjp_permute, permute.view = view_permute;
  OpDef expand = view_def("expand", "the same elements, stretched to a larger shape", {ints_attr("shape")});
  expand.infer = infer_expand, expand.vjp = vjp_expand, expand.view = view_expand;
  OpDef slice = view_def("slice", "a part of an axis",
                         {int_attr("axis"), int_attr("start"), int_attr("size"), int_attr("step")});
  slice.infer = infer_slice, slice.vjp = vjp_slice, slice.view = view_slice;
  OpDef detach = view_def("detach", "x, to which no gradient passes", {});
  detach.infer = infer_detach, detach.vjp = vjp_detach, detach.view = view_detach;
  for (OpDef* def : {&permute, &expand, &slice, &detach}) def->reference = reference_view;
  OpDef slice_grad{.name = "slice_grad",
                   .summary = "a part of an axis among zeros",
                   .work = {WorkKind::kCopy},
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .attrs = {int_attr("axis"), int_attr("start"), int_attr("step"), int_attr("extent")},
                   .infer = infer_slice_grad,
                   .reference = reference_slice_grad,
                   .recompute = ir::RecomputeClass::kNearlyFree};
  OpDef flip{.name = "flip",
             .summary = "an axis in reverse order",
             .work = {WorkKind::kCopy},
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = {int_attr("axis")},
             .infer = infer_flip,
             .vjp = vjp_flip,
             .reference = reference_flip,
             .recompute = ir::RecomputeClass::kNearlyFree};
  return {permute, expand, slice, detach, slice_grad, flip};
}

}  // namespace

OpGroup strided_ops() {
  static const std::vector<OpDef> kOps = make_ops();
  return kOps;
}

ValueId permute(Builder& b, ValueId x, std::vector<int64_t> axes) {
  return b.op("permute", {x}, {{"axes", std::move(axes)}});
}
ValueId expand(Builder& b, ValueId x, std::vector<int64_t> shape) {
  return b.op("expand", {x}, {{"shape", std::move(shape)}});
}
ValueId slice(Builder& b, ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step) {
  return b.op("slice", {x}, {{"axis", axis}, {"start", start}, {"size", size}, {"step", step}});
}
ValueId detach(Builder& b, ValueId x) { return b.op("detach", {x}); }
ValueId flip(Builder& b, ValueId x, int64_t axis) { return b.op("flip", {x}, {{"axis", axis}}); }

}  // namespace plimsoll::ops
