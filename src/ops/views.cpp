// Views: the same elements in another shape, and parts of the last axis.
#include <fmt/format.h>

#include <optional>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

using ir::ViewPlace;

// ---- reshape
// ---------------------------------------------------------------------------------------------------

Result<Types> infer_reshape(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const TensorType& x = t.inputs[0];
  const auto shape = shape_of(t.attrs.ints("shape"));
  in.require(shape.has_value(), "shape must be of 1 to 6 positive extents", {0});
  in.require(shape && shape->num_elements() == x.num_elements(),
             fmt::format("x does not hold the elements of {}", to_string(shape.value_or(Shape{}))), {0});
  return in.results({{x.dtype, shape.value_or(Shape{1})}});
}

void vjp_reshape(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  const auto dims = ctx.builder().type(op.inputs[0]).shape.dims();
  std::vector<int64_t> shape(dims.begin(), dims.end());
  ctx.add(0, reshape(ctx.builder(), dy, std::move(shape)));
}

/// Strides of the same elements under another shape, if no copy is needed: neighbouring axes of the old shape
/// are merged where they are contiguous, then cut as the new shape asks.
std::optional<ir::Strides> reshaped_strides(const Shape& from, const ir::Strides& strides, const Shape& to) {
  struct Run {
    int64_t extent, stride;
  };
  std::vector<Run> runs;
  for (int i = 0; i < from.rank(); ++i) {
    if (from.dim(i) == 1) continue;
    const Run run{from.dim(i), strides[at(i)]};
    if (!runs.empty() && runs.back().stride == run.stride * run.extent)
      runs.back() = {runs.back().extent * run.extent, run.stride};
    else
      runs.push_back(run);
  }
  ir::Strides result{};
  int64_t left = 1;  // extent of the current run not yet given to an axis of `to`
  int64_t step = 1;
  for (int i = to.rank() - 1; i >= 0; --i) {
    if (left == 1 && !runs.empty() && to.dim(i) != 1) {
      left = runs.back().extent;
      step = runs.back().stride;
      runs.pop_back();
    }
    if (to.dim(i) != 1 && left % to.dim(i) != 0) return std::nullopt;
    result[at(i)] = step;
    if (to.dim(i) != 1) {
      step *= to.dim(i);
      left /= to.dim(i);
    }
  }
  return result;
}

std::optional<ViewPlace> view_reshape(const OpTypes& t, const ir::Strides& strides, size_t) {
  const auto reshaped = reshaped_strides(t.inputs[0].shape, strides, t.outputs[0].shape);
  return reshaped ? std::optional(ViewPlace{0, *reshaped}) : std::nullopt;
}

// ---- root_loss
// -------------------------------------------------------------------------------------------------

Result<Types> infer_root_loss(const OpTypes& t) {
  Operands in(t, 2, {"x", "grad_scale"});
  if (!in) return in.error();
  in.dtypes(DType::kF32).shaped(0, Shape{1}).shaped(1, Shape{1});
  return in.results({t.inputs[0]});
}

/// By contract the loss's cotangent is grad_scale.
void vjp_root_loss(VjpContext& ctx) {
  if (ctx.cotangent(0).valid() && ctx.wants(0)) ctx.add(0, ctx.op().inputs[1]);
}

// ---- split
// ------------------------------------------------------------------------------------------

Result<Types> infer_split(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const TensorType& x = t.inputs[0];
  const auto& sizes = t.attrs.ints("sizes");
  int64_t left = x.shape.dim(-1);
  bool fits = !sizes.empty();
  Types parts;
  for (const int64_t size : sizes) {
    fits = fits && size >= 1 && size <= left;
    if (!fits) break;
    left -= size;
    parts.push_back({x.dtype, with_last(x.shape, size)});
  }
  in.require(fits && left == 0,
             fmt::format("sizes [{}] do not add up to the last axis", fmt::join(sizes, ",")), {0});
  return in.results(std::move(parts));
}

void vjp_split(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  bool any = false;
  for (size_t i = 0; i < op.outputs.size(); ++i) any = any || ctx.cotangent(i).valid();
  if (!any || !ctx.wants(0)) return;
  std::vector<ValueId> parts;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    ValueId part = ctx.cotangent(i);
    if (!part.valid()) {
      const auto dims = b.type(op.outputs[i]).shape.dims();
      part = fill(b, {dims.begin(), dims.end()}, -0.0);  // adding it changes no bit
    }
    parts.push_back(cast(b, part, b.type(op.inputs[0]).dtype));
  }
  ctx.add(0, parts.size() == 1 ? parts[0] : concat(b, std::move(parts)));
}

void reference_split(RefContext& ctx) {
  const int64_t width = ctx.inputs[0]->type.shape.dim(-1);
  int64_t start = 0;
  for (RefTensor* part : ctx.outputs) {
    const int64_t size = part->type.shape.dim(-1);
    for (int64_t i = 0; i < part->type.num_elements(); ++i)
      part->data[at(i)] = ctx.inputs[0]->data[at(i / size * width + start + i % size)];
    start += size;
  }
}

std::optional<ViewPlace> view_split(const OpTypes& t, const ir::Strides& strides, size_t output) {
  ViewPlace place{0, strides};
  const int64_t step = strides[at(t.inputs[0].shape.rank() - 1)];
  for (size_t i = 0; i < output; ++i) place.offset += t.outputs[i].shape.dim(-1) * step;
  return place;
}

}  // namespace

OpGroup views_ops() {
  using ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "reshape",
       .summary = "the same elements in another shape",
       .work = {WorkKind::kNone},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {ints_attr("shape")},
       .infer = infer_reshape,
       .vjp = vjp_reshape,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kSame,
       .view = view_reshape,
       .is_view = true},
      {.name = "root_loss",
       .summary = "x as the loss: its cotangent is grad_scale",
       .work = {WorkKind::kNone},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_root_loss,
       .vjp = vjp_root_loss,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kSame,
       .view = view_reshape,
       .is_view = true,
       .is_loss = true},
      {.name = "split",
       .summary = "cuts the last axis into parts",
       .work = {WorkKind::kNone},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {ints_attr("sizes")},
       .infer = infer_split,
       .vjp = vjp_split,
       .reference = reference_split,
       .recompute = RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kSame,
       .view = view_split,
       .is_view = true},
  };
  return kOps;
}

ValueId reshape(Builder& b, ValueId x, std::vector<int64_t> shape) {
  return b.op("reshape", {x}, {{"shape", std::move(shape)}});
}

ValueId root_loss(Builder& b, ValueId x, ValueId grad_scale) { return b.op("root_loss", {x, grad_scale}); }

std::vector<ValueId> split(Builder& b, ValueId x, std::vector<int64_t> sizes) {
  const size_t count = sizes.size();
  std::vector<ValueId> parts = b.ops("split", {x}, {{"sizes", std::move(sizes)}});
  parts.resize(count);
  return parts;
}

}  // namespace plimsoll::ops
