// Ops of adapters beside an embedding: columns by token, and rows that learn in place of the table's.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// The extents of `ids` with `last` behind them.
std::optional<Shape> behind(const Shape& ids, int64_t last) {
  std::vector<int64_t> extents(ids.dims().begin(), ids.dims().end());
  extents.push_back(last);
  return shape_of(extents);
}

Result<Types> infer_columns(const OpTypes& t) {
  Operands in(t, 2, {"table", "ids"});
  if (!in) return in.error();
  in.floating({0}, {1}).require(t.inputs[0].shape.rank() == 2, "table must have two axes", {0});
  if (!in) return in.error();
  const auto rows = behind(t.inputs[1].shape, t.inputs[0].shape.dim(0));
  in.require(rows.has_value(), "ids have too many axes", {1});
  return in.results({{DType::kF32, rows.value_or(Shape{1})}});
}

Result<Types> infer_columns_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "ids", "acc"});
  if (!in) return in.error();
  const auto table = shape_of({t.inputs[0].shape.dim(-1), t.attrs.i64("columns")});
  in.floating({}, {1}).require(table.has_value(), "columns out of range");
  in.require(t.inputs[0].shape.rank() >= 2 && without_last(t.inputs[0].shape) == t.inputs[1].shape,
             "tokens differ", {0, 1});
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(2, table.value_or(Shape{1})).same_dtype(2, dtype);
  return in.results({{dtype, table.value_or(Shape{1})}});
}

void vjp_columns(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || !ctx.wants(0)) return;
  ir::Attrs attrs{{"columns", b.type(op.inputs[0]).shape.dim(1)}};
  if (const ir::Attr* padding = op.attrs.find("padding")) attrs.set("padding", *padding);
  ctx.add(0, b.op("embedding_columns_grad", {dy, op.inputs[1]}, std::move(attrs)));
}

void reference_columns(RefContext& ctx) {
  const Shape& table = ctx.inputs[0]->type.shape;
  const size_t rows = at(table.dim(0)), columns = at(table.dim(1));
  for (size_t t = 0; t < ctx.inputs[1]->data.size(); ++t) {
    const auto id = static_cast<size_t>(ctx.inputs[1]->data[t]);
    PLIMSOLL_CHECK(id < columns, "embedding_columns: id beyond the table");
    for (size_t k = 0; k < rows; ++k)
      ctx.outputs[0]->data[t * rows + k] = ctx.inputs[0]->data[k * columns + id];
  }
}

void begin_sum(RefContext& ctx) {
  auto& total = ctx.outputs[0]->data;
  if (ctx.inputs.size() > 2 && ctx.inputs[2] != nullptr)
    total = ctx.inputs[2]->data;
  else
    total.assign(total.size(), -0.0);
}

void reference_columns_grad(RefContext& ctx) {
  begin_sum(ctx);
  const Shape& table = ctx.outputs[0]->type.shape;
  const size_t rows = at(table.dim(0)), columns = at(table.dim(1));
  const bool padded = ctx.op.attrs.find("padding") != nullptr;
  for (size_t t = 0; t < ctx.inputs[1]->data.size(); ++t) {
    const double id = ctx.inputs[1]->data[t];
    if (padded && id == static_cast<double>(ctx.op.attrs.i64("padding"))) continue;
    for (size_t k = 0; k < rows; ++k)
      ctx.outputs[0]->data[k * columns + static_cast<size_t>(id)] += ctx.inputs[0]->data[t * rows + k];
  }
}

// ---- token_rows
// --------------------------------------------------------------------------------------------------

/// Errors unless attribute `tokens` says one token a row.
void check_row_tokens(Operands& in, const OpTypes& t, int64_t rows) {
  const std::vector<int64_t>& tokens = t.attrs.ints("tokens");
  in.require(static_cast<int64_t>(tokens.size()) == rows && rows > 0, "tokens and rows differ");
  in.require(std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) == tokens.end(),
             "tokens must ascend");
}

/// The row of a token; nothing for one that has none.
std::optional<size_t> row_of(const std::vector<int64_t>& tokens, double id) {
  const auto token = static_cast<int64_t>(id);
  const auto found = std::lower_bound(tokens.begin(), tokens.end(), token);
  if (found == tokens.end() || *found != token) return std::nullopt;
  return static_cast<size_t>(found - tokens.begin());
}

Result<Types> infer_token_rows(const OpTypes& t) {
  Operands in(t, 3, {"x", "rows", "ids"});
  if (!in) return in.error();
  const Shape &x = t.inputs[0].shape, &rows = t.inputs[1].shape;
  in.floating({0, 1}, {2}).require(rows.rank() == 2 && rows.dim(1) == x.dim(-1), "widths differ", {0, 1});
  in.require(x.rank() >= 2 && without_last(x) == t.inputs[2].shape, "tokens differ", {0, 2});
  if (in) check_row_tokens(in, t, rows.dim(0));
  return in.results({t.inputs[0]});
}

Result<Types> infer_token_rows_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "ids", "acc"});
  if (!in) return in.error();
  const std::vector<int64_t>& tokens = t.attrs.ints("tokens");
  const auto rows = shape_of({static_cast<int64_t>(tokens.size()), t.inputs[0].shape.dim(-1)});
  in.floating({}, {1}).require(rows.has_value(), "tokens are asked for");
  in.require(t.inputs[0].shape.rank() >= 2 && without_last(t.inputs[0].shape) == t.inputs[1].shape,
             "tokens differ", {0, 1});
  check_row_tokens(in, t, static_cast<int64_t>(tokens.size()));
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(2, rows.value_or(Shape{1})).same_dtype(2, dtype);
  return in.results({{dtype, rows.value_or(Shape{1})}});
}

/// x's is dy with nothing where rows stand in its place.
void vjp_token_rows(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(0)) {
    const auto rows = b.type(op.inputs[1]).shape.dims();
    ctx.add(0, token_rows(b, dy, fill(b, {rows.begin(), rows.end()}, 0.0), op.inputs[2],
                          op.attrs.ints("tokens")));
  }
  if (ctx.wants(1)) ctx.add(1, b.op("token_rows_grad", {dy, op.inputs[2]}, op.attrs));
}

void reference_token_rows(RefContext& ctx) {
  const size_t width = at(ctx.inputs[1]->type.shape.dim(1));
  for (size_t t = 0; t < ctx.inputs[2]->data.size(); ++t) {
    const auto row = row_of(ctx.op.attrs.ints("tokens"), ctx.inputs[2]->data[t]);
    for (size_t i = 0; i < width; ++i)
      ctx.outputs[0]->data[t * width + i] =
          row ? ctx.inputs[1]->data[*row * width + i] : ctx.inputs[0]->data[t * width + i];
  }
}

void reference_token_rows_grad(RefContext& ctx) {
  begin_sum(ctx);
  const size_t width = at(ctx.outputs[0]->type.shape.dim(1));
  for (size_t t = 0; t < ctx.inputs[1]->data.size(); ++t)
    if (const auto row = row_of(ctx.op.attrs.ints("tokens"), ctx.inputs[1]->data[t]))
      for (size_t i = 0; i < width; ++i)
        ctx.outputs[0]->data[*row * width + i] += ctx.inputs[0]->data[t * width + i];
}

}  // namespace

OpGroup embedding_adapters_ops() {
  using enum ir::RecomputeClass;
  const AttrSpec padding{"padding", AttrSpec::Kind::kInt, false};
  static const std::vector<OpDef> kOps = {
      {.name = "embedding_columns",
       .summary = "columns of a table by token",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {padding},
       .infer = infer_columns,
       .vjp = vjp_columns,
       .cost = elementwise_cost<1>,
       .reference = reference_columns,
       .recompute = kNearlyFree},
      {.name = "embedding_columns_grad",
       .summary = "the gradient of a table by columns",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {int_attr("columns"), padding, out_attr()},
       .infer = infer_columns_grad,
       .cost = elementwise_cost<1>,
       .reference = reference_columns_grad,
       .recompute = kNearlyFree,
       .accumulators = {{0, 2}},
       .output_dtypes = {{0, "out"}}},
      {.name = "token_rows",
       .summary = "x, with rows in place of what stands at their tokens",
       .work = {WorkKind::kCopy},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {ints_attr("tokens")},
       .infer = infer_token_rows,
       .vjp = vjp_token_rows,
       .cost = elementwise_cost<1>,
       .reference = reference_token_rows,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "token_rows_grad",
       .summary = "the rows' gradient",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 3,
       .attrs = {ints_attr("tokens"), out_attr()},
       .infer = infer_token_rows_grad,
       .cost = elementwise_cost<1>,
       .reference = reference_token_rows_grad,
       .recompute = kNearlyFree,
       .accumulators = {{0, 2}},
       .output_dtypes = {{0, "out"}}},
  };
  return kOps;
}

ValueId embedding_columns(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding) {
  ir::Attrs attrs;
  if (padding) attrs.set("padding", *padding);
  return b.op("embedding_columns", {table, ids}, std::move(attrs));
}

ValueId token_rows(Builder& b, ValueId x, ValueId rows, ValueId ids, std::vector<int64_t> tokens) {
  return b.op("token_rows", {x, rows, ids}, {{"tokens", std::move(tokens)}});
}

}  // namespace plimsoll::ops
