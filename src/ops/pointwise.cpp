// The op that holds an expression: broadcasting, and the derivative as expressions again.
#include "ops/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ops/broadcast.h"
#include "ops/expression.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

constexpr std::array<std::string_view, Expression::kMaxInputs> kOperandNames = {
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11"};

/// The dtype where {out} does not say.
DType own_dtype(const OpTypes& t, const Expression& f) {
  std::optional<DType> dtype;
  for (const TensorType& x : t.inputs)
    if (ir::is_computable(x.dtype)) dtype = dtype ? widest(*dtype, x.dtype) : x.dtype;
  return f.is_stored_f32() ? DType::kF32 : dtype.value_or(DType::kF32);
}

Result<Types> infer_pointwise(const OpTypes& t) {
  const size_t given = std::min<size_t>(std::max<size_t>(t.inputs.size(), 1), kOperandNames.size());
  Operands in(t, given, {kOperandNames.begin(), kOperandNames.begin() + static_cast<std::ptrdiff_t>(given)});
  if (!in) return in.error();
  const auto f = Expression::parse(t.attrs.str("expr"));
  if (!f) return Error{.what = fmt::format("{}: expr {}", t.op, f.error().what)};
  in.require(f->num_inputs() <= static_cast<int>(given),
             fmt::format("expr reads x{}, given {} operands", f->num_inputs() - 1, given));
  std::optional<Shape> shape = t.inputs[0].shape;
  for (size_t i = 0; i < given; ++i) {
    const TensorType& x = t.inputs[i];
    in.require(ir::is_computable(x.dtype) || x.dtype == DType::kI32,
               fmt::format("x{} must be f32, bf16, f16 or i32, is {}", i, to_string(x)));
    const auto joined = shape ? broadcast(*shape, x.shape) : std::nullopt;
    in.require(joined.has_value() || !shape, "shapes do not stretch to one", {0, i});
    shape = joined;
  }
  if (t.attrs.find("shape") != nullptr && shape) {
    const auto wanted = shape_of(t.attrs.ints("shape"));
    in.require(wanted && stretches_to(*shape, *wanted), "the operands do not stretch to {shape}", {0});
    shape = wanted;
  }
  return in.results({{out_dtype(in, t, own_dtype(t, *f)), shape.value_or(Shape{1})}});
}

/// The operands that `f` reads, and f over those alone. A derivative that was too large stays as it is:
/// inference refuses its text.
Expression over_read_operands(const Expression& f, std::vector<ValueId>& operands) {
  if (!f.is_complete()) return f;
  std::vector<ValueId> read;
  std::array<int, Expression::kMaxInputs> numbers{};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!f.reads(static_cast<int>(i))) continue;
    numbers[i] = static_cast<int>(read.size());
    read.push_back(operands[i]);
  }
  operands = std::move(read);
  return f.renumbered(numbers);
}

void vjp_pointwise(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  const Expression f = *Expression::parse(op.attrs.str("expr"));
  const int last = static_cast<int>(op.inputs.size());
  for (int i = 0; i < last; ++i) {
    const TensorType x = b.type(op.inputs[at(i)]);
    if (!ctx.wants(at(i)) || !ir::is_computable(x.dtype)) continue;
    std::vector<ValueId> operands = op.inputs;
    operands.push_back(dy);
    if (last == Expression::kMaxInputs) {  // no room for the cotangent: the op's own inference says so
      b.op("pointwise", std::move(operands), op.attrs);
      return;
    }
    const auto slope = derivative(f, i, last);
    if (!slope) continue;
    const Expression g = over_read_operands(*slope, operands);
    const bool is_same = x.shape == b.type(dy).shape;
    ValueId part = operands.size() == 1 && g.nodes().size() == 1 ? dy : ValueId{};
    const DType stored = is_same ? x.dtype : b.type(dy).dtype;
    if (!part.valid())
      part = b.op("pointwise", std::move(operands),
                  {{"expr", g.text()}, {"out", std::string(ir::name(stored))}});
    ctx.add(at(i), is_same ? cast(b, part, x.dtype) : sum_to(b, part, x.shape, x.dtype));
  }
}

Cost cost_pointwise(const OpTypes& t) {
  const auto f = Expression::parse(t.attrs.str("expr"));
  return cost_of(t, (f ? f->flops() : 0) * static_cast<double>(t.outputs[0].num_elements()));
}

void reference_pointwise(RefContext& ctx) {
  const Expression f = *Expression::parse(ctx.op.attrs.str("expr"));
  const Shape& shape = ctx.outputs[0]->type.shape;
  std::vector<ir::Strides> strides;
  for (const RefTensor* x : ctx.inputs)
    strides.push_back(stretched_strides(x->type.shape, ir::dense_strides(x->type.shape), shape));
  std::vector<double> elements(ctx.inputs.size());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    for (size_t k = 0; k < elements.size(); ++k)
      elements[k] = ctx.inputs[k]->data[at(offset_of(shape, i, strides[k]))];
    ctx.outputs[0]->data[at(i)] = f.evaluate(elements);
  }
}

}  // namespace

OpGroup pointwise_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "pointwise",
       .summary = "an expression of each element",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = Expression::kMaxInputs,
       .attrs = {string_attr("expr"), {"shape", AttrSpec::Kind::kInts, false}, out_attr()},
       .infer = infer_pointwise,
       .vjp = vjp_pointwise,
       .cost = cost_pointwise,
       .reference = reference_pointwise,
       .autocast = ir::AutocastClass::kWidest,
       .recompute = ir::RecomputeClass::kNearlyFree,
       .in_place = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}},
       .output_dtypes = {{0, "out"}},
       .takes_any_view = true},
  };
  return kOps;
}

ValueId pointwise(Builder& b, const std::string& expression, std::vector<ValueId> operands) {
  return b.op("pointwise", std::move(operands), {{"expr", expression}});
}

}  // namespace plimsoll::ops
