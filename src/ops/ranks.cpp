// The references compute what rank 0 gets if all ranks hold the same values. A device without a connection to
// other ranks does the same.
#include "ops/ranks.h"

#include <algorithm>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

int64_t ranks_of(const OpTypes& t) { return t.attrs.i64("ranks"); }

Operands& check_ranks(Operands& in, const OpTypes& t) {
  return in.dtypes(DType::kF32).require(ranks_of(t) >= 1, "ranks must be positive");
}

Shape with_first(int64_t first, const Shape& rest) {
  std::vector<int64_t> extents = {first};
  for (int i = 0; i < rest.rank(); ++i) extents.push_back(rest.dim(i));
  return Shape(std::span<const int64_t>(extents));
}

Result<Types> infer_exchange(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  check_ranks(in, t);
  if (!in) return in.error();
  const int64_t ranks = ranks_of(t);
  return in.results({{DType::kF32, Shape{ranks, piece_elements(t.inputs[0].num_elements(), ranks)}}});
}

Result<Types> infer_gather_ranks(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  in.require(t.inputs[0].shape.rank() < Shape::kMaxRank, "x has too many axes", {0})
      .require(!ir::is_block(t.inputs[0].dtype), "x must be of a plain dtype", {0})
      .require(ranks_of(t) >= 1, "ranks must be positive");
  if (!in) return in.error();
  return in.results({{t.inputs[0].dtype, with_first(ranks_of(t), t.inputs[0].shape)}});
}

Result<Types> infer_sum_ranks(const OpTypes& t) {
  Operands in(t, 1, {"received", "sent"});
  if (!in) return in.error();
  in.dtypes(DType::kF32).require(t.inputs[0].shape.rank() > 1, "received must have an axis of ranks", {0});
  if (!in) return in.error();
  const Shape& all = t.inputs[0].shape;
  std::vector<int64_t> extents;
  for (int i = 1; i < all.rank(); ++i) extents.push_back(all.dim(i));
  return in.results({{DType::kF32, Shape(std::span<const int64_t>(extents))}});
}

Result<Types> infer_all_gather(const OpTypes& t) {
  Operands in(t, 2, {"piece", "x"});
  if (!in) return in.error();
  const TensorType &piece = t.inputs[0], &x = t.inputs[1];
  in.require(ranks_of(t) >= 1, "ranks must be positive")
      .require(piece.dtype == x.dtype && !ir::is_block(x.dtype) && ir::bits(x.dtype) % 8 == 0 &&
                   piece.num_elements() * ranks_of(t) >= x.num_elements(),
               "piece is not of x", {0, 1});
  return in.results({t.inputs[1]});
}

void reference_exchange(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  const int64_t piece = ctx.outputs[0]->type.shape.dim(1), n = std::ssize(x);
  for (int64_t i = 0; i < std::ssize(y); ++i) y[at(i)] = i % piece < n ? x[at(i % piece)] : 0;
}

/// Also of all_gather: the result is the operand's elements over and over.
void reference_repeat(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i % x.size()];
}

void reference_sum_ranks(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  std::fill(y.begin(), y.end(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) y[i % y.size()] += x[i];
}

/// To the rank that has the first piece, or to all others that have one.
ir::Traffic traffic_of_exchange(const OpTypes& t) {
  return {ranks_of(t) - 1, t.outputs[0].bytes().count / ranks_of(t)};
}

Cost cost_sum_ranks(const OpTypes& t) {
  OpTypes read = t;
  read.inputs.resize(1);
  return cost_of(read, static_cast<double>(t.inputs[0].num_elements()));
}

}  // namespace

OpGroup ranks_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "exchange",
       .summary = "this rank's piece of every rank's tensor",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("ranks")},
       .infer = infer_exchange,
       .traffic = traffic_of_exchange,
       .reference = reference_exchange,
       .autocast = kF32,
       .recompute = kNever,
       .has_effect = true},
      {.name = "gather_ranks",
       .summary = "every rank's tensor",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("ranks")},
       .infer = infer_gather_ranks,
       .traffic = traffic_to_all,
       .reference = reference_repeat,
       .recompute = kNever,
       .has_effect = true},
      {.name = "sum_ranks",
       .summary = "sum over ranks, in their order",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 2,
       .infer = infer_sum_ranks,
       .cost = cost_sum_ranks,
       .reference = reference_sum_ranks,
       .autocast = kF32,
       .recompute = kNever},
      {.name = "all_gather",
       .summary = "a tensor from every rank's piece",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("ranks")},
       .infer = infer_all_gather,
       .traffic = traffic_of_pieces,
       .reference = reference_repeat,
       .recompute = kNever,
       .consumes = {{0, 1}},
       .has_effect = true},
  };
  return kOps;
}

ir::Traffic traffic_to_all(const OpTypes& t) { return {ranks_of(t) - 1, t.inputs[0].bytes().count}; }
ir::Traffic traffic_of_pieces(const OpTypes& t) {
  const int64_t piece = t.inputs[0].bytes().count;
  return {std::min(ranks_of(t) - 1, ceil_div(t.outputs[0].bytes().count, piece)), piece};
}

ValueId exchange(Builder& b, ValueId x, int64_t ranks) { return b.op("exchange", {x}, {{"ranks", ranks}}); }
ValueId gather_ranks(Builder& b, ValueId x, int64_t ranks) {
  return b.op("gather_ranks", {x}, {{"ranks", ranks}});
}
ValueId sum_ranks(Builder& b, ValueId received) { return b.op("sum_ranks", {received}); }
bool is_sum_of_ranks(const OpDef& def) { return def.name == "sum_ranks"; }
ValueId all_gather(Builder& b, ValueId piece, ValueId x, int64_t ranks) {
  return b.op("all_gather", {piece, x}, {{"ranks", ranks}});
}

}  // namespace plimsoll::ops
