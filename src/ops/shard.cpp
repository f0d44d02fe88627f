// The references compute what rank 0 gets if all ranks hold the same values, as those of ops/ranks.h.
#include "ops/shard.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "ops/operands.h"
#include "ops/ranks.h"
#include "ops/rounding.h"
#include "ops/update_draws.h"

namespace plimsoll::ops {
namespace {

int64_t num_ranks(const OpTypes& t) { return t.attrs.i64("ranks"); }

/// Chunks of a piece of a tensor.
int64_t piece_chunks(int64_t elements, int64_t ranks) {
  return piece_elements(elements, ranks) / kPieceGrain;
}

bool is_shareable(const TensorType& x) { return !ir::is_block(x.dtype) && ir::bits(x.dtype) % 8 == 0; }

Result<Types> infer_own_piece(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  in.require(is_shareable(t.inputs[0]), "x must be of a plain dtype", {0})
      .require(num_ranks(t) >= 1, "ranks must be positive")
      .require(t.attrs.i64("elements") >= 1, "elements must be positive");
  if (!in) return in.error();
  return in.results({{t.inputs[0].dtype, Shape{t.attrs.i64("elements")}}});
}

Result<Types> infer_put_piece(const OpTypes& t) {
  Operands in(t, 2, {"piece", "x"});
  if (!in) return in.error();
  in.require(is_shareable(t.inputs[0]) && t.inputs[0].dtype == t.inputs[1].dtype, "piece is not of x", {0, 1})
      .require(num_ranks(t) >= 1, "ranks must be positive");
  return in.results({t.inputs[1]});
}

/// The first operand on some ranks, in the place of the second.
Result<Types> infer_of_owner(const OpTypes& t) {
  Operands in(t, 2, {"x", "kept"});
  if (!in) return in.error();
  in.require(t.inputs[0] == t.inputs[1] && is_shareable(t.inputs[0]), "x and kept differ", {0, 1})
      .require(t.attrs.i64("owner") >= 0 && t.attrs.i64("owner") < num_ranks(t), "the owner is no rank");
  return in.results({t.inputs[0]});
}

/// What `unshard` makes.
TensorType whole_type(const OpTypes& t) {
  const std::vector<int64_t>& shape = t.attrs.ints("shape");
  return {dtype_attr(t.attrs, "dtype").value_or(t.inputs[0].dtype), Shape(std::span<const int64_t>(shape))};
}

Result<Types> infer_unshard(const OpTypes& t) {
  Operands in(t, 1, {"kept"});
  if (!in) return in.error();
  const int64_t ranks = num_ranks(t), owner = t.attrs.i64("owner");
  in.require(ranks >= 1, "ranks must be positive")
      .require(owner >= -1 && owner < ranks, "the owner is no rank")
      .require(shape_of(t.attrs.ints("shape")).has_value(), "shape must be of 1 to 6 positive extents");
  if (!in) return in.error();
  const TensorType whole = whole_type(t);
  in.require(t.inputs[0] == (owner < 0 ? piece_type(whole, ranks) : whole), "kept is not of the tensor", {0});
  return in.results({whole});
}

Result<Types> infer_own_tensor(const OpTypes& t) {
  const size_t count = std::max<size_t>(t.inputs.size(), 1);
  Operands in(t, count, std::vector<std::string_view>(count, "x"));
  if (!in) return in.error();
  for (size_t i = 1; i < count; ++i) in.require(t.inputs[i] == t.inputs[0], "tensors differ", {0, i});
  in.require(is_shareable(t.inputs[0]), "x must be of a plain dtype", {0})
      .require(static_cast<int64_t>(count) <= num_ranks(t), "more tensors than ranks");
  return in.results({t.inputs[0]});
}

Result<Types> infer_own_draws(const OpTypes& t) {
  Operands in(t, 1, {"random"});
  if (!in) return in.error();
  in.same_dtype(0, DType::kI32).shaped(0, Shape{4});
  in.require(!t.attrs.ints("keys").empty() && t.attrs.i64("elements") % 4 == 0, "there are no such draws");
  return in.results({{DType::kI32, Shape{kOwnDraws}}});
}

Result<Types> infer_own_chunks(const OpTypes& t) {
  Operands in(t, 0, {});
  const std::vector<int64_t>&elements = t.attrs.ints("elements"), &held = t.attrs.ints("held");
  in.require(!elements.empty() && held.size() == elements.size(), "elements and held differ in number")
      .require(num_ranks(t) >= 1, "ranks must be positive");
  return in.results({{DType::kI32, Shape{std::ssize(elements), kChunkWords}}});
}

Result<Types> infer_chunk_squares(const OpTypes& t) {
  std::vector<std::string_view> names(std::max<size_t>(t.inputs.size(), 2), "x");
  names[0] = "own";
  Operands in(t, names.size(), names);
  if (!in) return in.error();
  check_short(in, t, "rounded");
  const std::vector<int64_t>& elements = t.attrs.ints("elements");
  in.floating({}, {0})
      .require(elements.size() + 1 == t.inputs.size(), "elements are not of the tensors")
      .shaped(0, Shape{std::ssize(elements), kChunkWords})
      .require(num_ranks(t) >= 1, "ranks must be positive");
  if (!in) return in.error();
  int64_t chunks = 0;
  for (const int64_t n : elements) chunks += piece_chunks(n, num_ranks(t));
  return in.results({{DType::kI32, Shape{chunks, 2}}});
}

Result<Types> infer_sum_chunk_squares(const OpTypes& t) {
  Operands in(t, 1, {"squares"});
  if (!in) return in.error();
  const std::vector<int64_t>& pieces = t.attrs.ints("pieces");
  in.require(t.inputs[0].dtype == DType::kI32 && t.inputs[0].shape.rank() == 3 && !pieces.empty() &&
                 t.inputs[0].shape.dim(1) == std::accumulate(pieces.begin(), pieces.end(), int64_t{0}),
             "squares are not of pieces", {0});
  return in.results({{DType::kF32, Shape{static_cast<int64_t>(pieces.size())}}});
}

void reference_own_piece(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  for (size_t i = 0; i < y.size(); ++i) y[i] = i < x.size() ? x[i] : 0;
}

void reference_put_piece(RefContext& ctx) {
  const auto& piece = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  y = ctx.inputs[1]->data;
  std::copy_n(piece.begin(), std::min(piece.size(), y.size()), y.begin());
}
/// Of plain dtypes: a block's storage is no list of numbers.
void reference_unshard(RefContext& ctx) {
  PLIMSOLL_CHECK(!ir::is_block(ctx.outputs[0]->type.dtype), "pieces of blocks are bytes");
  const auto& kept = ctx.inputs[0]->data;
  auto& y = ctx.outputs[0]->data;
  for (size_t i = 0; i < y.size(); ++i) y[i] = kept[i % kept.size()];
}

void reference_put_owned(RefContext& ctx) {
  ctx.outputs[0]->data = ctx.inputs[ctx.op.attrs.i64("owner") == 0 ? 0 : 1]->data;
}

void reference_own_draws(RefContext& ctx) {
  std::copy_n(ctx.inputs[0]->data.begin(), 3, ctx.outputs[0]->data.begin());
}

double squares_between(const RefTensor& x, int64_t begin, int64_t count, std::optional<DType> dtype) {
  double sum = 0;
  for (int64_t i = begin; i < begin + count; ++i) {
    const double v = dtype ? rounded(x.data[at(i)], *dtype) : x.data[at(i)];
    sum += v * v;
  }
  return sum;
}

/// The halves of a double stand for it in i32.
void put_halves(double value, double* halves) {
  const auto bits = std::bit_cast<std::array<int32_t, 2>>(value);
  halves[0] = bits[0], halves[1] = bits[1];
}
double of_halves(const double* halves) {
  return std::bit_cast<double>(std::array{static_cast<int32_t>(halves[0]), static_cast<int32_t>(halves[1])});
}

void reference_own_chunks(RefContext& ctx) {
  const std::vector<int64_t>&elements = ctx.op.attrs.ints("elements"), &held = ctx.op.attrs.ints("held");
  for (size_t t = 0; t < elements.size(); ++t) {
    const OwnChunks own = own_chunks_of(elements[t], held[t], ctx.op.attrs.i64("ranks"), 0);
    double* words = &ctx.outputs[0]->data[t * kChunkWords];
    words[0] = own.first, words[1] = own.count, words[2] = own.last_elements;
  }
}

void reference_chunk_squares(RefContext& ctx) {
  const std::vector<int64_t>& elements = ctx.op.attrs.ints("elements");
  size_t chunk = 0;
  for (size_t t = 0; t < elements.size(); ++t) {
    const double* own = &ctx.inputs[0]->data[t * kChunkWords];
    for (int64_t c = 0; c < piece_chunks(elements[t], ctx.op.attrs.i64("ranks")); ++c, ++chunk) {
      const auto count = static_cast<double>(c) + 1 < own[1] ? kPieceGrain
                         : static_cast<double>(c) < own[1]   ? static_cast<int64_t>(own[2])
                                                             : 0;
      put_halves(squares_between(*ctx.inputs[1 + t], (static_cast<int64_t>(own[0]) + c) * kPieceGrain, count,
                                 dtype_attr(ctx.op.attrs, "rounded")),
                 &ctx.outputs[0]->data[2 * chunk]);
    }
  }
}

void reference_sum_chunk_squares(RefContext& ctx) {
  const Shape& shape = ctx.inputs[0]->type.shape;
  const std::vector<int64_t>& pieces = ctx.op.attrs.ints("pieces");
  int64_t first = 0;
  for (size_t t = 0; t < pieces.size(); ++t) {
    double sum = 0;
    for (int64_t rank = 0; rank < shape.dim(0); ++rank)
      for (int64_t chunk = 0; chunk < pieces[t]; ++chunk)
        sum += of_halves(&ctx.inputs[0]->data[at(2 * (rank * shape.dim(1) + first + chunk))]);
    ctx.outputs[0]->data[t] = sum;
    first += pieces[t];
  }
}

Cost cost_chunk_squares(const OpTypes& t) {
  double elements = 0;
  for (const TensorType& x : t.inputs) elements += static_cast<double>(x.num_elements());
  return cost_of(t, 2 * elements);
}

Cost cost_of_piece(const OpTypes& t) {
  const int64_t piece = std::min(t.inputs[0].bytes().count, t.outputs[0].bytes().count);
  return {.bytes = 2 * static_cast<double>(piece)};
}
/// A gather of pieces, or what the owner has.
ir::Traffic traffic_of_unshard(const OpTypes& t) {
  return t.attrs.i64("owner") < 0 ? traffic_of_pieces(t) : traffic_to_all(t);
}

}  // namespace

OpGroup shard_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "own_piece",
       .summary = "this rank's piece of a tensor",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("ranks"), int_attr("elements")},
       .infer = infer_own_piece,
       .cost = cost_of_piece,
       .reference = reference_own_piece,
       .recompute = kNever},
      {.name = "put_piece",
       .summary = "a tensor with this rank's piece in its place",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("ranks")},
       .infer = infer_put_piece,
       .cost = cost_of_piece,
       .reference = reference_put_piece,
       .recompute = kNever,
       .consumes = {{0, 1}}},
      {.name = "unshard",
       .summary = "a whole tensor of which each rank keeps a piece, or one rank all",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("ranks"),
                 int_attr("owner"),
                 ints_attr("shape"),
                 {"dtype", AttrSpec::Kind::kString, false}},
       .infer = infer_unshard,
       .traffic = traffic_of_unshard,
       .reference = reference_unshard,
       .recompute = kNever,
       .elements = ir::Elements::kSame,
       .has_effect = true},
      {.name = "own_tensor",
       .summary = "this rank's one of several tensors",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = -1,
       .attrs = {int_attr("ranks")},
       .infer = infer_own_tensor,
       .reference = reference_copy,
       .recompute = kNever},
      {.name = "put_owned",
       .summary = "a tensor on its owner, another one on the other ranks",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("ranks"), int_attr("owner")},
       .infer = infer_of_owner,
       .reference = reference_put_owned,
       .recompute = kNever,
       .consumes = {{0, 1}}},
      {.name = "from_owner",
       .summary = "one rank's tensor on all",
       .work = {WorkKind::kCopy},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {int_attr("ranks"), int_attr("owner")},
       .infer = infer_of_owner,
       .traffic = traffic_to_all,
       .reference = reference_copy,
       .recompute = kNever,
       .consumes = {{0, 1}},
       .has_effect = true},
      {.name = "own_draws",
       .summary = "what this rank's part of an update draws from",
       .work = {WorkKind::kCopy},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {int_attr("ranks"), int_attr("elements"), ints_attr("keys")},
       .infer = infer_own_draws,
       .reference = reference_own_draws,
       .recompute = kNever},
      {.name = "own_chunks",
       .summary = "where the chunks of this rank's pieces lie",
       .work = {WorkKind::kCopy},
       .min_inputs = 0,
       .max_inputs = 0,
       .attrs = {int_attr("ranks"), ints_attr("elements"), ints_attr("held")},
       .infer = infer_own_chunks,
       .reference = reference_own_chunks,
       .recompute = kNever},
      {.name = "chunk_squares",
       .summary = "squares of the chunks of this rank's pieces",
       .work = {.kind = WorkKind::kReduction, .is_multi_tensor = true},
       .min_inputs = 2,
       .max_inputs = -1,
       .attrs = {int_attr("ranks"), ints_attr("elements"), {"rounded", AttrSpec::Kind::kString, false}},
       .infer = infer_chunk_squares,
       .cost = cost_chunk_squares,
       .reference = reference_chunk_squares,
       .recompute = kNever,
       .reads_gradients = true},
      {.name = "sum_chunk_squares",
       .summary = "sums of squares of many tensors from those of their chunks",
       .work = {WorkKind::kReduction},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {ints_attr("pieces")},
       .infer = infer_sum_chunk_squares,
       .reference = reference_sum_chunk_squares,
       .recompute = kNever},
  };
  return kOps;
}

ValueId own_piece(Builder& b, ValueId x, int64_t ranks, int64_t elements) {
  return b.op("own_piece", {x}, {{"ranks", ranks}, {"elements", elements}});
}
ValueId put_piece(Builder& b, ValueId piece, ValueId x, int64_t ranks) {
  return b.op("put_piece", {piece, x}, {{"ranks", ranks}});
}

ir::TensorType piece_type(const ir::TensorType& whole, int64_t ranks) {
  if (ir::is_block(whole.dtype)) return {DType::kU8, {piece_elements(whole.bytes().count, ranks)}};
  return {whole.dtype, {piece_elements(whole.num_elements(), ranks)}};
}
ValueId unshard(Builder& b, ValueId kept, const ir::TensorType& whole, int64_t ranks, int64_t owner) {
  const auto dims = whole.shape.dims();
  return b.op("unshard", {kept},
              {{"ranks", ranks},
               {"owner", owner},
               {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
               {"dtype", std::string(ir::name(whole.dtype))}});
}

bool is_own_piece(const OpDef& def) { return def.name == "own_piece"; }
bool makes_whole(const OpDef& def) { return def.name == "unshard"; }

ValueId own_tensor(Builder& b, const std::vector<ValueId>& tensors, int64_t ranks) {
  return b.op("own_tensor", tensors, {{"ranks", ranks}});
}
ValueId put_owned(Builder& b, ValueId x, ValueId kept, int64_t ranks, int64_t owner) {
  return b.op("put_owned", {x, kept}, {{"ranks", ranks}, {"owner", owner}});
}
ValueId from_owner(Builder& b, ValueId x, ValueId kept, int64_t ranks, int64_t owner) {
  return b.op("from_owner", {x, kept}, {{"ranks", ranks}, {"owner", owner}});
}
ValueId own_draws(Builder& b, ValueId random, int64_t ranks, int64_t elements,
                  const std::vector<int64_t>& keys) {
  return b.op("own_draws", {random}, {{"ranks", ranks}, {"elements", elements}, {"keys", keys}});
}

OwnChunks own_chunks_of(int64_t elements, int64_t held, int64_t ranks, int64_t rank) {
  const int64_t all = ceil_div(elements, kPieceGrain), piece = piece_chunks(elements, ranks);
  const int64_t begin = rank * piece, count = std::clamp<int64_t>(all - begin, 0, piece);
  const bool has_last = count > 0 && begin + count == all;
  return {static_cast<int32_t>(held == elements && count > 0 ? begin : 0), static_cast<int32_t>(count),
          static_cast<int32_t>(has_last ? elements - (all - 1) * kPieceGrain : kPieceGrain)};
}

ValueId squares_over_ranks(Builder& b, const std::vector<ValueId>& gradients,
                           const std::vector<int64_t>& elements, int64_t ranks, DType rounded) {
  std::vector<int64_t> held, pieces;
  for (size_t t = 0; t < gradients.size(); ++t) {
    held.push_back(b.type(gradients[t]).num_elements());
    pieces.push_back(piece_chunks(elements[t], ranks));
  }
  ir::Attrs attrs{{"ranks", ranks}, {"elements", elements}};
  if (rounded != DType::kF32) attrs.set("rounded", std::string(ir::name(rounded)));
  std::vector<ValueId> operands = {
      b.op("own_chunks", {}, {{"ranks", ranks}, {"elements", elements}, {"held", held}})};
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  const ValueId squares = b.op("chunk_squares", std::move(operands), std::move(attrs));
  return b.op("sum_chunk_squares", {gather_ranks(b, squares, ranks)}, {{"pieces", pieces}});
}

}  // namespace plimsoll::ops
