// Rows of axis 0: storages of weights side by side as one operand of a product.
#include <fmt/format.h>

#include <algorithm>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Shape with_first(Shape shape, int64_t extent) {
  shape.set_dim(0, extent);
  return shape;
}

Result<Types> infer_concat_rows(const OpTypes& t) {
  const size_t count = std::max<size_t>(t.inputs.size(), 1);
  Operands in(t, count, std::vector<std::string_view>(count, "part"));
  if (!in) return in.error();
  TensorType joined = t.inputs[0];
  for (size_t i = 1; i < t.inputs.size(); ++i) {
    const TensorType& part = t.inputs[i];
    in.require(part.dtype == joined.dtype && part.shape.rank() == joined.shape.rank() &&
                   with_first(part.shape, 1) == with_first(joined.shape, 1),
               "parts differ in more than the first axis", {0, i});
    joined.shape.set_dim(0, joined.shape.dim(0) + part.shape.dim(0));
  }
  return in.results({joined});
}

/// The rows of `gradient`, cut at `sizes`. Those of a weight gradient are weight gradients themselves, so
/// that each can have an accumulator and what nobody wants is not computed: dead code takes the whole.
std::vector<ValueId> gradient_rows(Builder& b, ValueId gradient, const std::vector<int64_t>& sizes,
                                   const VjpContext& ctx) {
  const Op maker = b.graph().op(b.graph().value(gradient).producer);
  const int operand = maker.def->columns_to_rows != nullptr ? maker.def->columns_to_rows(maker.attrs) : -1;
  if (operand < 0) return split_rows(b, gradient, sizes);
  const std::vector<ValueId> columns = split(b, maker.inputs[at(operand)], sizes);
  std::vector<ValueId> rows(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!ctx.wants(i)) continue;
    std::vector<ValueId> inputs = maker.inputs;
    inputs[at(operand)] = columns[i];
    rows[i] = b.op(maker.def->name, std::move(inputs), maker.attrs);
  }
  return rows;
}

void vjp_concat_rows(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  std::vector<int64_t> sizes;
  for (const ValueId part : op.inputs) sizes.push_back(b.type(part).shape.dim(0));
  const std::vector<ValueId> rows = gradient_rows(b, dy, sizes, ctx);
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (ctx.wants(i)) ctx.add(i, rows[i]);
}

void reference_concat_rows(RefContext& ctx) {
  auto to = ctx.outputs[0]->data.begin();
  for (const RefTensor* part : ctx.inputs) to = std::copy(part->data.begin(), part->data.end(), to);
}

}  // namespace

OpGroup rows_ops() {
  static const std::vector<OpDef> kOps = {
      {.name = "concat_rows",
       .summary = "joins along the first axis",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = -1,
       .attrs = {{"name", AttrSpec::Kind::kString, false}},
       .infer = infer_concat_rows,
       .vjp = vjp_concat_rows,
       .reference = reference_concat_rows,
       .autocast = ir::AutocastClass::kOneDtype,
       .recompute = ir::RecomputeClass::kNearlyFree,
       .elements = ir::Elements::kJoined},
  };
  return kOps;
}

ValueId concat_rows(Builder& b, std::vector<ValueId> parts, const std::string& name) {
  return b.op("concat_rows", std::move(parts), name.empty() ? ir::Attrs{} : ir::Attrs{{"name", name}});
}

std::vector<ValueId> split_rows(Builder& b, ValueId x, const std::vector<int64_t>& sizes) {
  const Shape shape = b.type(x).shape;
  const int64_t row = shape.num_elements() / shape.dim(0);
  std::vector<int64_t> elements;
  for (const int64_t rows : sizes) elements.push_back(rows * row);
  std::vector<ValueId> parts = split(b, reshape(b, x, {shape.num_elements()}), elements);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Shape part = with_first(shape, sizes[i]);
    parts[i] = reshape(b, parts[i], {part.dims().begin(), part.dims().end()});
  }
  return parts;
}

}  // namespace plimsoll::ops
