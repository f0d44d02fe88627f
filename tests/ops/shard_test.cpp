// Pieces of tensors that ranks share, and the squares of their chunks, on rank 0.
#include "ops/shard.h"

#include <gtest/gtest.h>

#include <array>

#include "ops/op_testing.h"
#include "ops/ranks.h"

namespace plimsoll::ops_testing {
namespace {

Attrs of_ranks(int64_t ranks) { return {{"ranks", ranks}}; }

TEST(Shard, APieceEndsInZerosWhereTheTensorEnds) {
  const RefTensor x = values({3}, {1, 2, 3});
  EXPECT_EQ(evaluate("own_piece", {x}, {{"ranks", int64_t{2}}, {"elements", int64_t{2}}})[0].data,
            (std::vector<double>{1, 2}));
  EXPECT_EQ(evaluate("own_piece", {x}, {{"ranks", int64_t{1}}, {"elements", int64_t{4}}})[0].data,
            (std::vector<double>{1, 2, 3, 0}));
  EXPECT_EQ(evaluate("put_piece", {values({2}, {7, 8}), x}, of_ranks(2))[0].data,
            (std::vector<double>{7, 8, 3}));
}

TEST(Shard, ATensorIsWholeFromWhatRanksKeep) {
  const auto whole = [](int64_t owner, const char* dtype = "f32") {
    return Attrs{{"ranks", int64_t{2}},
                 {"owner", owner},
                 {"shape", std::vector<int64_t>{2, 16'000}},
                 {"dtype", std::string(dtype)}};
  };
  const RefTensor piece = normal({ops::kPieceGrain}, 1), owned = normal({2, 16'000}, 2);
  const RefTensor gathered = evaluate("unshard", {piece}, whole(-1))[0];
  EXPECT_EQ(gathered.type, owned.type);
  EXPECT_EQ(gathered.data[ops::kPieceGrain], piece.data[0]) << "the other rank's begins there";
  EXPECT_EQ(evaluate("unshard", {owned}, whole(1))[0].data, owned.data);
  EXPECT_EQ(operand_error({"unshard", {f32({7})}, whole(-1), ""}),
            "unshard: kept is not of the tensor: kept [7]");
  EXPECT_EQ(operand_error({"unshard", {f32({7})}, whole(2), ""}), "unshard: the owner is no rank");
}

/// Of blocks the bytes of codes and scales, in as many pieces.
TEST(Shard, APieceOfABlockTypeIsBytes) {
  const ir::TensorType codes{ir::DType::kNf4, {256, 512}};
  EXPECT_EQ(ops::piece_type(codes, 3),
            (ir::TensorType{ir::DType::kU8, {ops::piece_elements(codes.bytes().count, 3)}}));
  EXPECT_EQ(ops::piece_type({ir::DType::kBf16, {256, 512}}, 3),
            (ir::TensorType{ir::DType::kBf16, {3 * ops::kPieceGrain}}));
}

/// Each rank has its own chunks; the last of a tensor ends with it.
TEST(Shard, ChunksArePiecesOfTheWhole) {
  const int64_t n = 4 * ops::kPieceGrain + 5;  // of three ranks the last has one chunk, of 5 elements
  const std::vector<std::array<int64_t, 4>> rows = {
      {0, 0, 2, ops::kPieceGrain}, {1, 2, 2, ops::kPieceGrain}, {2, 4, 1, 5}};
  for (const auto& [rank, first, count, last] : rows) {
    const ops::OwnChunks of_whole = ops::own_chunks_of(n, n, 3, rank);
    EXPECT_EQ(of_whole.first, first);
    EXPECT_EQ(of_whole.count, count);
    EXPECT_EQ(of_whole.last_elements, last);
    EXPECT_EQ(ops::own_chunks_of(n, 2 * ops::kPieceGrain, 3, rank).first, 0) << "it holds its piece";
  }
  EXPECT_EQ(ops::own_chunks_of(7, 7, 3, 1).count, 0);
}

TEST(Shard, SquaresOfChunksAreThoseOfThePieces) {
  const RefTensor large = normal({2 * ops::kPieceGrain + 5}, 1), small = normal({3}, 2);
  const std::vector<int64_t> elements = {large.type.num_elements(), 3};
  const Attrs one{{"ranks", int64_t{1}}, {"elements", elements}};
  Attrs own = one;
  own.set("held", elements);
  const Tensors ranges = evaluate("own_chunks", {}, own);
  const Tensors chunks = evaluate("chunk_squares", {ranges[0], large, small}, one);
  const Tensors all = evaluate("gather_ranks", {chunks[0]}, of_ranks(1));
  const Tensors sums = evaluate("sum_chunk_squares", {all[0]}, {{"pieces", std::vector<int64_t>{3, 1}}});
  EXPECT_NEAR(sums[0].data[0], evaluate("sum_squares", {large})[0].data[0], 1e-9);
  EXPECT_EQ(sums[0].data[1], evaluate("sum_squares", {small})[0].data[0]);
}

TEST(Shard, WrongOperandsAreNamed) {
  const std::vector<ErrorCase> rows = {
      {"own_piece",
       {f32({3})},
       {{"ranks", int64_t{2}}, {"elements", int64_t{0}}},
       "own_piece: elements must be positive"},
      {"put_piece", {f32({3}), i32({6})}, of_ranks(2), "put_piece: piece is not of x: piece [3], x [6]"},
      {"sum_chunk_squares",
       {i32({2, 3, 2})},
       {{"pieces", std::vector<int64_t>{2}}},
       "sum_chunk_squares: squares are not of pieces: squares [2,3,2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
