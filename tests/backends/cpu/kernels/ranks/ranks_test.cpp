// Ops between ranks: the sum's order, and the ops on a device that is alone, against the reference.
#include "ops/ranks.h"

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs of_ranks(int64_t ranks) { return {{"ranks", ranks}}; }

TEST(Ranks, AgreeWithTheReference) {
  for (const int64_t ranks : {1, 2, 3, 8, 9, 17}) {
    expect_op({"exchange", {normal({50'000}, 1)}, of_ranks(ranks)}, 0);
    expect_op({"exchange", {normal({3, 7}, 1)}, of_ranks(ranks)}, 0);
    expect_op({"gather_ranks", {normal({3, 7}, 1)}, of_ranks(ranks)}, 0);
    expect_op({"sum_ranks", {normal({ranks, 5000}, 2)}, {}}, 3e-6);
    expect_op({"sum_ranks", {normal({ranks, 3, 5}, 2)}, {}}, 3e-6);
    const int64_t piece = ops::piece_elements(50'001, ranks);
    const Tensor whole = normal({50'001}, 4);
    expect_op({"all_gather", {normal({piece}, 3), whole}, of_ranks(ranks)}, 0);
    expect_op(
        {"all_gather", {as(DType::kBf16, normal({piece}, 3)), as(DType::kBf16, whole)}, of_ranks(ranks)}, 0);
    expect_op({"own_piece", {whole}, {{"ranks", ranks}, {"elements", piece}}}, 0);
    expect_op(
        {"own_piece", {as(DType::kBf16, normal({3, 7}, 1))}, {{"ranks", ranks}, {"elements", int64_t{64}}}},
        0);
    const Attrs owned{{"ranks", ranks}, {"owner", int64_t{0}}};
    expect_op({"put_owned", {normal({9}, 5), normal({9}, 6)}, owned}, 0);
    expect_op({"from_owner", {normal({9}, 5), normal({9}, 6)}, owned}, 0);
    const Attrs shared{{"ranks", ranks}, {"owner", int64_t{-1}}, {"shape", std::vector<int64_t>{3, 16'667}}};
    expect_op({"unshard", {as(DType::kBf16, normal({piece}, 3))}, shared}, 0);
    Attrs of_one = shared;
    of_one.set("owner", int64_t{0});
    expect_op({"unshard", {normal({3, 16'667}, 4)}, of_one}, 0);
    expect_op({"own_tensor", {normal({9}, 5)}, of_ranks(ranks)}, 0);
    expect_op({"put_piece", {normal({piece}, 3), whole}, of_ranks(ranks)}, 0);
  }
}

TEST(Ranks, SumsOnACardAreThoseOfTheCpu) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr) GTEST_SKIP() << "no card";
  for (const int64_t ranks : {2, 7, 8, 9, 70, 513}) {
    const OpRun run{"sum_ranks", {normal({ranks, 3001}, 2)}, {}};
    expect_same_bits(run_on_card(*card, run), run_cpu(run), std::to_string(ranks) + " ranks");
  }
}

/// Numbers whose squares are added without rounding, in any order.
Tensor small_whole_numbers(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i * i % 13 - 6));
  return floats({n}, values);
}

TEST(Ranks, SquaresOfChunksAgreeWithTheReference) {
  const std::vector<int64_t> elements = {51'000, 5, 16'384};
  for (const int64_t ranks : {1, 2, 3}) {
    expect_op({"own_draws",
               {ints({4}, {11, -3, 7, 0})},
               {{"ranks", ranks}, {"elements", int64_t{16'384}}, {"keys", std::vector<int64_t>{5}}}},
              0);
    const OpRun places{"own_chunks", {}, {{"ranks", ranks}, {"elements", elements}, {"held", elements}}};
    expect_op(places, 0);
    const OpRun chunks{"chunk_squares",
                       {run_cpu(places)[0], small_whole_numbers(51'000), small_whole_numbers(5),
                        as(DType::kBf16, small_whole_numbers(16'384))},
                       {{"ranks", ranks}, {"elements", elements}}};
    expect_op(chunks, 0);
    Tensor squares = run_cpu(chunks)[0];
    std::vector<int64_t> pieces;
    for (const int64_t n : elements) pieces.push_back(ops::piece_elements(n, ranks) / ops::kPieceGrain);
    const auto own = squares.bits;
    for (int64_t rank = 1; rank < ranks; ++rank)
      squares.bits.insert(squares.bits.end(), own.begin(), own.end());
    squares.type.shape = Shape{ranks, squares.type.shape.dim(0), 2};
    expect_op({"sum_chunk_squares", {squares}, {{"pieces", pieces}}}, 1e-6);
  }
}

/// The values of ranks in the order that numerics.md names, by hand.
float in_groups_of_eight(const std::vector<float>& values) {
  if (values.size() == 1) return values[0];
  std::vector<float> sums;
  for (size_t i = 0; i < values.size(); ++i)
    if (i % 8 == 0)
      sums.push_back(values[i]);
    else
      sums.back() += values[i];
  return in_groups_of_eight(sums);
}

TEST(Ranks, AreAddedInOrderAndAboveEightInGroups) {
  for (const int64_t ranks : {2, 7, 8, 9, 16, 64, 65, 100, 513}) {
    const Tensor received = normal({ranks, 37}, static_cast<unsigned>(ranks));
    const Tensor sum = run_cpu({"sum_ranks", {received}, {}})[0];
    for (size_t i = 0; i < 37; ++i) {
      std::vector<float> values;
      for (int64_t r = 0; r < ranks; ++r)
        values.push_back(static_cast<float>(received.value(static_cast<size_t>(r) * 37 + i)));
      EXPECT_EQ(static_cast<float>(sum.value(i)), in_groups_of_eight(values)) << ranks << " ranks";
    }
  }
}

TEST(Ranks, PiecesBeginAtTheGrainAndCoverAll) {
  for (const int64_t n : {1, 16'384, 16'385, 1'000'000, 28'311'552})
    for (const int64_t ranks : {1, 2, 3, 7, 8, 1024}) {
      const int64_t piece = ops::piece_elements(n, ranks);
      EXPECT_EQ(piece % ops::kPieceGrain, 0);
      EXPECT_GE(piece * ranks, n);
      EXPECT_LT((piece - ops::kPieceGrain) * ranks, n) << "no larger than needed";
    }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
