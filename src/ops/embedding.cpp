// Table look-up by token, and its gradient: the rows of the table, summed in the order of the tokens.
#include <fmt/format.h>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_embedding(const OpTypes& t) {
  Operands in(t, 2, {"table", "ids"});
  if (!in) return in.error();
  const Shape& table = t.inputs[0].shape;
  const Shape& ids = t.inputs[1].shape;
  in.floating({}, {1}).require(table.rank() == 2, "table must have two axes", {0});
  in.require(ids.rank() < Shape::kMaxRank, "ids have too many axes", {1});
  std::vector<int64_t> extents(ids.dims().begin(), ids.dims().end());
  extents.push_back(table.dim(1));
  const DType dtype = out_dtype(in, t, t.inputs[0].dtype);
  return in.results({{dtype, shape_of(extents).value_or(Shape{})}});
}

/// dy and ids agree; `rows` x H is the table.
Operands& check_tokens(Operands& in, const OpTypes& t, size_t dy, size_t ids) {
  const Shape& tokens = t.inputs[ids].shape;
  const Shape& grad = t.inputs[dy].shape;
  return in.floating({}, {ids}).require(grad.rank() >= 2 && without_last(grad) == tokens, "tokens differ",
                                        {dy, ids});
}

Result<Types> infer_embedding_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "ids", "acc"});
  if (!in) return in.error();
  const int64_t rows = t.attrs.i64("rows");
  const auto table = shape_of({rows, t.inputs[0].shape.dim(-1)});
  check_tokens(in, t, 0, 1).require(table.has_value(), fmt::format("rows {} out of range", rows));
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(2, table.value_or(Shape{1})).same_dtype(2, dtype);
  return in.results({{dtype, table.value_or(Shape{1})}});
}

Result<Types> infer_embedding_grad_add(const OpTypes& t) {
  Operands in(t, 3, {"total", "dy", "ids"});
  if (!in) return in.error();
  const Shape& total = t.inputs[0].shape;
  check_tokens(in, t, 1, 2)
      .require(total.rank() == 2 && total.dim(-1) == t.inputs[1].shape.dim(-1), "widths differ", {0, 1});
  return in.results({t.inputs[0]});
}

void vjp_embedding(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  const int64_t rows = b.type(op.inputs[0]).shape.dim(0);
  ir::Attrs attrs{{"rows", rows}};
  if (const ir::Attr* padding = op.attrs.find("padding")) attrs.set("padding", *padding);
  attrs = with_out(std::move(attrs), b.type(op.inputs[0]).dtype);
  ctx.add(0, b.op("embedding_grad", {dy, op.inputs[1]}, std::move(attrs)));
}

// ---- references
// --------------------------------------------------------------------------------------------------

size_t checked_row(double id, int64_t rows) {
  PLIMSOLL_CHECK(id >= 0 && id < static_cast<double>(rows), "embedding: id beyond the table");
  return static_cast<size_t>(id);
}

void reference_embedding(RefContext& ctx) {
  const Shape& table = ctx.inputs[0]->type.shape;
  const size_t width = at(table.dim(1));
  for (size_t t = 0; t < ctx.inputs[1]->data.size(); ++t) {
    const size_t row = checked_row(ctx.inputs[1]->data[t], table.dim(0));
    for (size_t i = 0; i < width; ++i)
      ctx.outputs[0]->data[t * width + i] = ctx.inputs[0]->data[row * width + i];
  }
}

void add_tokens(const RefTensor& dy, const RefTensor& ids, const ir::Attrs& attrs, RefTensor& total) {
  const size_t width = at(total.type.shape.dim(1));
  const bool padded = attrs.find("padding") != nullptr;
  for (size_t t = 0; t < ids.data.size(); ++t) {
    if (padded && ids.data[t] == static_cast<double>(attrs.i64("padding"))) continue;
    const size_t row = checked_row(ids.data[t], total.type.shape.dim(0));
    for (size_t i = 0; i < width; ++i) total.data[row * width + i] += dy.data[t * width + i];
  }
}

void reference_embedding_grad(RefContext& ctx) {
  RefTensor& total = *ctx.outputs[0];
  if (ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr)
    total.data = ctx.inputs[2]->data;
  else
    total.data.assign(total.data.size(), -0.0);
  add_tokens(*ctx.inputs[0], *ctx.inputs[1], ctx.op.attrs, total);
}

void reference_embedding_grad_add(RefContext& ctx) {
  RefTensor rows{ctx.outputs[0]->type, std::vector<double>(ctx.outputs[0]->data.size(), -0.0)};
  add_tokens(*ctx.inputs[1], *ctx.inputs[2], ctx.op.attrs, rows);
  for (size_t i = 0; i < rows.data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + rows.data[i];
}

// The rows of the tokens cross memory, not the table.
Cost cost_embedding(const OpTypes& t) {
  return {0, 2.0 * static_cast<double>(t.outputs[0].bytes().count) +
                 static_cast<double>(t.inputs[1].bytes().count)};
}
Cost cost_embedding_grad(const OpTypes& t) {
  return cost_of(t, static_cast<double>(t.inputs[0].num_elements()));
}
Cost cost_embedding_grad_add(const OpTypes& t) {
  const auto tokens = static_cast<double>(t.inputs[1].bytes().count);
  return {static_cast<double>(t.inputs[1].num_elements()),
          3 * tokens + static_cast<double>(t.inputs[2].bytes().count)};
}

}  // namespace

OpGroup embedding_ops() {
  using enum ir::RecomputeClass;
  const AttrSpec padding{"padding", AttrSpec::Kind::kInt, false};
  static const std::vector<OpDef> kOps = {
      {.name = "embedding",
       .summary = "rows of a table by token",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {padding, out_attr()},
       .infer = infer_embedding,
       .vjp = vjp_embedding,
       .cost = cost_embedding,
       .reference = reference_embedding,
       .recompute = kNearlyFree,
       .elements = ir::Elements::kRows,
       .output_dtypes = {{0, "out", 0}},
       .begins_residual = true},
      {.name = "embedding_grad",
       .summary = "the table's gradient",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {int_attr("rows"), padding, out_attr()},
       .infer = infer_embedding_grad,
       .cost = cost_embedding_grad,
       .reference = reference_embedding_grad,
       .recompute = kNearlyFree,
       .accumulators = {{0, 2}},
       .output_dtypes = {{0, "out"}}},
      {.name = "embedding_grad_add",
       .summary = "total plus the table's gradient",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {padding},
       .infer = infer_embedding_grad_add,
       .cost = cost_embedding_grad_add,
       .reference = reference_embedding_grad_add,
       .recompute = kNearlyFree,
       .consumes = {{0, 0}}},
  };
  return kOps;
}

ValueId embedding(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding) {
  ir::Attrs attrs;
  if (padding) attrs.set("padding", *padding);
  if (b.type(table).dtype != DType::kF32) attrs.set("out", std::string(ir::name(DType::kF32)));
  return b.op("embedding", {table, ids}, std::move(attrs));
}

}  // namespace plimsoll::ops
