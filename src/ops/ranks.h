// Ops between the ranks of a run. A tensor that is summed over ranks is cut into pieces, one a rank; each
// rank receives its piece of every rank, adds them in the order of ranks, and all gather the sums:
//
//   gradient [n]  ─ exchange ─► [ranks, piece] ─ sum_ranks ─► [piece] ─ all_gather ─► [n], in its place
//   small, loss   ─ gather_ranks ─► [ranks, n] ─ sum_ranks ─► [n]
//
// A program does not depend on the rank that runs it: all ranks have the same plan.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "ir/builder.h"
#include "ir/op_def.h"

namespace plimsoll::ops {

/// Pieces begin at multiples of this: the chunk of sum_squares, so that the norm's partial sums are the same
/// whoever computes them.
constexpr int64_t kPieceGrain = 16'384;
/// Sums over more ranks are a tree: each group of so many adds in order, then the groups do.
constexpr int64_t kRankFanIn = 8;

/// Elements of the largest piece of `n` elements; one rank or several may have fewer, or none.
constexpr int64_t piece_elements(int64_t n, int64_t ranks) {
  return ceil_div(ceil_div(n, kPieceGrain), ranks) * kPieceGrain;
}
/// OpDef::traffic: every rank's first operand to all others.
ir::Traffic traffic_to_all(const ir::OpTypes& types);
/// The same where the operand is a rank's piece of the result, of which a small one has fewer than there are
/// ranks.
ir::Traffic traffic_of_pieces(const ir::OpTypes& types);

/// Levels of the tree over `ranks`: 1 for up to kRankFanIn.
constexpr int64_t rank_levels(int64_t ranks) {
  int64_t levels = 1;
  for (int64_t reached = kRankFanIn; reached < ranks; reached *= kRankFanIn) ++levels;
  return levels;
}

/// The order of a sum over ranks, on a place for a sum at each level: `copy(rank)` begins the sum of level 0
/// with a rank's values and `add(rank)` adds them; `copy_level(l)` and `add_level(l)` do so at level l with
/// the sum of level l - 1. The whole sum then stands at level rank_levels(ranks) - 1.
template <typename Copy, typename Add, typename CopyLevel, typename AddLevel>
void in_order_of_ranks(int64_t ranks, Copy copy, Add add, CopyLevel copy_level, AddLevel add_level) {
  const int64_t levels = rank_levels(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    rank % kRankFanIn == 0 ? copy(rank) : add(rank);
    int64_t behind = rank + 1;  // of groups of the level below
    for (int64_t level = 1; level < levels; ++level) {
      const bool ends_group = behind % kRankFanIn == 0 || rank + 1 == ranks;
      if (!ends_group) break;
      const int64_t group = ceil_div(behind, kRankFanIn) - 1;
      group % kRankFanIn == 0 ? copy_level(level) : add_level(level);
      behind = group + 1;
    }
  }
}

/// f32 x -> f32[ranks, piece_elements]: every rank's part of this rank's piece. Op `exchange` {ranks}.
ir::ValueId exchange(ir::Builder& b, ir::ValueId x, int64_t ranks);
/// x[…] -> [ranks, …]: every rank's x. Op `gather_ranks` {ranks}.
ir::ValueId gather_ranks(ir::Builder& b, ir::ValueId x, int64_t ranks);
/// f32[ranks, …] -> f32[…]: the sum over ranks, in f32 and in their order. Op `sum_ranks`(received, sent?):
/// `sent` is not read; other ranks may read its bytes until here.
ir::ValueId sum_ranks(ir::Builder& b, ir::ValueId received);
/// Whether that is the op.
bool is_sum_of_ranks(const ir::OpDef& def);
/// Writes every rank's piece, rank r's from r * piece on, where `x` of the same plain dtype lies, of whose
/// type the result is. Op `all_gather` {ranks}.
ir::ValueId all_gather(ir::Builder& b, ir::ValueId piece, ir::ValueId x, int64_t ranks);

}  // namespace plimsoll::ops
