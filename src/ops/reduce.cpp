// Sums, means and maxima over chosen axes.
#include "ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/broadcast.h"
#include "ops/operands.h"
#include "ops/pointwise.h"
#include "ops/strided.h"

namespace plimsoll::ops {
namespace {

constexpr std::array<std::string_view, 3> kReduceNames = {"sum", "mean", "max"};

bool is_reduced(const std::vector<int64_t>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// x's shape with extent 1 for the axes that go.
Shape kept_shape(Shape x, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) x.set_dim(static_cast<int>(axis), 1);
  return x;
}

Shape reduced_shape(const Shape& x, const std::vector<int64_t>& axes, bool keep) {
  if (keep) return kept_shape(x, axes);
  std::vector<int64_t> extents;
  for (int i = 0; i < x.rank(); ++i)
    if (!is_reduced(axes, i)) extents.push_back(x.dim(i));
  return extents.empty() ? Shape{1} : Shape(std::span<const int64_t>(extents));
}

Result<Types> infer_reduce(const OpTypes& t) {
  Operands in(t, 1, {"x", "acc"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const auto& axes = t.attrs.ints("axes");
  const auto kind = parse_reduce(t.attrs.str("kind"));
  in.floating({1}).require(kind.has_value(), "kind must be sum, mean or max");
  bool rising = true;
  for (size_t i = 0; i < axes.size(); ++i)
    rising = rising && axes[i] >= (i == 0 ? 0 : axes[i - 1] + 1) && axes[i] < x.rank();
  in.require(rising, "axes must be axes of x, rising, each once", {0});
  if (!in) return in.error();
  const DType own = kind == Reduce::kMax ? t.inputs[0].dtype : DType::kF32;
  const TensorType result{out_dtype(in, t, own), reduced_shape(x, axes, t.attrs.flag("keep"))};
  in.shaped(1, result.shape);
  in.require(!t.has(1) || (kind == Reduce::kSum && result.dtype == DType::kF32),
             "a sum is accumulated, in f32");
  return in.results({result});
}

double num_reduced(const Op& op, const Shape& x) {
  return static_cast<double>(x.num_elements()) /
         static_cast<double>(kept_shape(x, op.attrs.ints("axes")).num_elements());
}

/// The cotangent of a maximum goes to the elements that are one, in equal parts.
ValueId slope_of_max(Builder& b, const Op& op, ValueId dy, const Shape& kept) {
  const TensorType x = b.type(op.inputs[0]);
  const ValueId y = reshape(b, op.outputs[0], extents_of(kept));
  const ValueId is_one = b.op("pointwise", {op.inputs[0], y}, {{"expr", std::string("eq(x0,x1)")}});
  const ValueId count = reduce(b, Reduce::kSum, is_one, op.attrs.ints("axes"), true);
  return b.op("pointwise", {is_one, dy, count},
              {{"expr", std::string("mul(x0,div(x1,x2))")}, {"out", std::string(ir::name(x.dtype))}});
}

void vjp_reduce(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId cotangent = ctx.cotangent(0);
  if (!cotangent.valid()) return;
  if (op.inputs.size() > 1 && op.inputs[1].valid() && ctx.wants(1)) ctx.add(1, cotangent);
  if (!ctx.wants(0)) return;
  const TensorType x = b.type(op.inputs[0]);
  const Shape kept = kept_shape(x.shape, op.attrs.ints("axes"));
  const Reduce kind = *parse_reduce(op.attrs.str("kind"));
  ValueId dy = cotangent;
  if (b.type(dy).shape != kept) dy = reshape(b, dy, extents_of(kept));
  if (kind == Reduce::kMax) return ctx.add(0, slope_of_max(b, op, dy, kept));
  const double n = kind == Reduce::kMean ? num_reduced(op, x.shape) : 1;
  if (n != 1)
    dy = b.op("pointwise", {dy},
              {{"expr", fmt::format("div(x0,{})", n)}, {"out", std::string(ir::name(x.dtype))}});
  dy = cast(b, dy, x.dtype);
  ctx.add(0, kept == x.shape ? dy : expand(b, dy, extents_of(x.shape)));
}

Cost cost_reduce(const OpTypes& t) { return cost_of(t, static_cast<double>(t.inputs[0].num_elements())); }

void reference_reduce(RefContext& ctx) {
  const auto& axes = ctx.op.attrs.ints("axes");
  const Reduce kind = *parse_reduce(ctx.op.attrs.str("kind"));
  const Shape& x = ctx.inputs[0]->type.shape;
  const Shape kept = kept_shape(x, axes);
  auto& results = ctx.outputs[0]->data;
  std::fill(results.begin(), results.end(),
            kind == Reduce::kMax ? -std::numeric_limits<double>::infinity() : 0.0);
  if (ctx.inputs.size() > 1 && ctx.inputs[1] != nullptr) results = ctx.inputs[1]->data;
  const ir::Strides strides = stretched_strides(kept, ir::dense_strides(kept), x);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    double& result = results[at(offset_of(x, i, strides))];
    const double element = ctx.inputs[0]->data[at(i)];
    result = kind != Reduce::kMax ? result + element : result >= element ? result : element;
  }
  if (kind == Reduce::kMean)
    for (double& result : results) result /= num_reduced(ctx.op, x);
}

}  // namespace

std::string_view name(Reduce kind) { return kReduceNames[static_cast<size_t>(kind)]; }

std::optional<Reduce> parse_reduce(std::string_view text) {
  for (size_t i = 0; i < kReduceNames.size(); ++i)
    if (kReduceNames[i] == text) return static_cast<Reduce>(i);
  return std::nullopt;
}

OpGroup reduce_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "reduce",
       .summary = "sum, mean or maximum over axes",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 2,
       .attrs = {string_attr("kind"), ints_attr("axes"), bool_attr("keep"), out_attr()},
       .infer = infer_reduce,
       .vjp = vjp_reduce,
       .cost = cost_reduce,
       .reference = reference_reduce,
       .autocast = ir::AutocastClass::kF32,
       .recompute = ir::RecomputeClass::kNearlyFree,
       .accumulators = {{0, 1}},
       .output_dtypes = {{0, "out"}},
       .takes_any_view = true},
  };
  return kOps;
}

ValueId reduce(Builder& b, Reduce kind, ValueId x, std::vector<int64_t> axes, bool keep,
               std::optional<DType> dtype) {
  ir::Attrs attrs{{"kind", std::string(name(kind))}, {"axes", std::move(axes)}, {"keep", keep}};
  if (dtype) attrs.set("out", std::string(ir::name(*dtype)));
  return b.op("reduce", {x}, std::move(attrs));
}

}  // namespace plimsoll::ops
