// Ops that move or name data and compute nothing: state, joins, copies, casts, constants.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

// ---- state
// -----------------------------------------------------------------------------------------------------

Result<Types> infer_state(const OpTypes& t) {
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{}: the type comes from the state's declaration; read it with Builder::read", t.op)};
}

// The interpreter holds the states; it gives `state` its value and takes state_assign's itself.
void reference_state(RefContext&) {}

Result<Types> infer_state_assign(const OpTypes& t) {
  Operands in(t, 1, {"value"});
  if (!in) return in.error();
  const int64_t begin = t.attrs.find("begin") == nullptr ? 0 : t.attrs.i64("begin");
  in.require(begin >= 0 && begin <= ir::kMaxElements, "a window begins at an element");
  return in.results({});
}

// ---- concat
// -----------------------------------------------------------------------------------------------------

Result<Types> infer_concat(const OpTypes& t) {
  Operands in(t, std::max<size_t>(t.inputs.size(), 1),
              std::vector<std::string_view>(std::max<size_t>(t.inputs.size(), 1), "part"));
  if (!in) return in.error();
  TensorType joined = t.inputs[0];
  for (size_t i = 1; i < t.inputs.size(); ++i) {
    const TensorType& part = t.inputs[i];
    in.require(part.dtype == joined.dtype && part.shape.rank() == joined.shape.rank() &&
                   with_last(part.shape, 1) == with_last(joined.shape, 1),
               "parts differ in more than the last axis", {0, i});
    joined.shape.set_dim(-1, joined.shape.dim(-1) + part.shape.dim(-1));
  }
  return in.results({joined});
}

void vjp_concat(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  bool any = false;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    any = any || ctx.wants(i);
    sizes.push_back(b.type(op.inputs[i]).shape.dim(-1));
  }
  if (!dy.valid() || !any) return;
  const std::vector<ValueId> parts = split(b, dy, std::move(sizes));
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (ctx.wants(i)) ctx.add(i, parts[i]);
}

void reference_concat(RefContext& ctx) {
  const int64_t width = ctx.outputs[0]->type.shape.dim(-1);
  int64_t start = 0;
  for (const RefTensor* part : ctx.inputs) {
    const int64_t size = part->type.shape.dim(-1);
    for (int64_t i = 0; i < part->type.num_elements(); ++i)
      ctx.outputs[0]->data[at(i / size * width + start + i % size)] = part->data[at(i)];
    start += size;
  }
}

// ---- copy and fill
// ---------------------------------------------------------------------------------------------

Result<Types> infer_copy(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  return in ? in.results({t.inputs[0]}) : in.error();
}

void vjp_copy(VjpContext& ctx) {
  if (ctx.cotangent(0).valid() && ctx.wants(0)) ctx.add(0, ctx.cotangent(0));
}

Result<Types> infer_cast(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  const bool is_bytes = t.inputs[0].dtype == DType::kU8 && !dtype_attr(t.attrs, "out");
  const DType dtype = is_bytes ? DType::kF32 : out_dtype(in.floating(), t, DType::kF32);
  return in.results({{dtype, t.inputs[0].shape}});
}

void vjp_cast(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (dy.valid() && ctx.wants(0)) ctx.add(0, cast(ctx.builder(), dy, ctx.builder().type(op.inputs[0]).dtype));
}

Result<Types> infer_fill(const OpTypes& t) {
  Operands in(t, 0, {});
  const auto shape = shape_of(t.attrs.ints("shape"));
  in.require(shape.has_value(), "shape must be of 1 to 6 positive extents");
  return in.results({{DType::kF32, shape.value_or(Shape{1})}});
}

void reference_fill(RefContext& ctx) {
  std::fill(ctx.outputs[0]->data.begin(), ctx.outputs[0]->data.end(), ctx.op.attrs.f64("value"));
}

}  // namespace

OpGroup structure_ops() {
  using ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "state",
       .summary = "reads a state of the session",
       .work = {WorkKind::kNone},
       .attrs = {string_attr("name")},
       .infer = infer_state,
       .reference = reference_state,
       .recompute = RecomputeClass::kNever,
       .state = ir::StateAccess::kRead},
      {.name = "state_assign",
       .summary = "the state, or its elements from begin on, takes the value",
       .work = {WorkKind::kNone},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {string_attr("name"), {"begin", AttrSpec::Kind::kInt, false}},
       .infer = infer_state_assign,
       .reference = reference_state,
       .recompute = RecomputeClass::kNever,
       .state = ir::StateAccess::kAssign,
       .has_effect = true},
      {.name = "concat",
       .summary = "joins along the last axis",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = -1,
       .infer = infer_concat,
       .vjp = vjp_concat,
       .reference = reference_concat,
       .autocast = ir::AutocastClass::kOneDtype,
       .recompute = RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kJoined},
      {.name = "copy",
       .summary = "a dense copy",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_copy,
       .vjp = vjp_copy,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kSame,
       .takes_any_view = true},
      {.name = "cast",
       .summary = "the same values in another dtype",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {out_attr()},
       .infer = infer_cast,
       .vjp = vjp_cast,
       .reference = reference_copy,
       .recompute = RecomputeClass::kNearlyFree,
       .in_place = {{0, 0}},
       .elements = ir::Elements::kSame,
       .output_dtypes = {{0, "out"}},
       .is_cast = true},
      {.name = "fill",
       .summary = "a constant tensor",
       .work = {WorkKind::kElementwise},
       .attrs = {ints_attr("shape"), float_attr("value")},
       .infer = infer_fill,
       .reference = reference_fill,
       .recompute = RecomputeClass::kNearlyFree},
  };
  return kOps;
}

ValueId concat(Builder& b, std::vector<ValueId> parts) { return b.op("concat", std::move(parts)); }
ValueId cast(Builder& b, ValueId x, DType dtype) {
  if (b.type(x).dtype == dtype) return x;
  return b.op("cast", {x}, with_out({}, dtype));
}
ValueId copy(Builder& b, ValueId x) { return b.op("copy", {x}); }

ValueId fill(Builder& b, std::vector<int64_t> shape, double value) {
  return b.op("fill", {}, {{"shape", std::move(shape)}, {"value", value}});
}

}  // namespace plimsoll::ops
