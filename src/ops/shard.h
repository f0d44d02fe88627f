// Ops on tensors of which each rank of a run holds one piece (ops/ranks.h says where pieces begin). A rank
// holds its piece as a tensor of its own, [piece]; the last pieces are padded with zeros:
//
//   parameter [n] ─ own_piece ─► [piece] ─ update ─► [piece] ─ all_gather ─► [n], in its place
//
// A parameter may be kept so as well (ZeRO-3): programs make it whole before they read it, and drop it
// behind.
//
//   kept [piece] ─ unshard ─► [n]          every rank's piece, or the owner's tensor
//
// Squares of gradients of which each rank has its own piece of the sum, at its place in the whole or as a
// tensor of its own: each rank computes those of the chunks of its piece, and all gather them. They are the
// numbers that one rank computes of the whole gradients, added in the same order:
//
//   gradients ─ chunk_squares ─► [chunks] ─ gather_ranks ─► [ranks, chunks]
//             ─ sum_chunk_squares ─► [gradients]
#pragma once

#include <cstdint>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

/// x[…] -> [elements]: this rank's piece of a tensor of a plain dtype, where rank r's begins at r * elements.
/// Op `own_piece` {ranks, elements}.
ir::ValueId own_piece(ir::Builder& b, ir::ValueId x, int64_t ranks, int64_t elements);
/// Whether that is the op.
bool is_own_piece(const ir::OpDef& def);
/// Writes this rank's piece where `x` lies, of whose type the result is; the rest of it stays. Op `put_piece`
/// {ranks}.
ir::ValueId put_piece(ir::Builder& b, ir::ValueId piece, ir::ValueId x, int64_t ranks);

// Ops on tensors of one type, each of which one rank owns whole: rank i owns tensor i.

/// A whole tensor, type `whole`, of which each rank keeps its piece (piece_type), or rank `owner` all; owner
/// -1: none. Op `unshard` {ranks, owner, shape, dtype}.
ir::ValueId unshard(ir::Builder& b, ir::ValueId kept, const ir::TensorType& whole, int64_t ranks,
                    int64_t owner);
/// Whether that is the op.
bool makes_whole(const ir::OpDef& def);

/// x_0 … -> the tensor that this rank owns; the last one on ranks that own none. Op `own_tensor` {ranks}.
ir::ValueId own_tensor(ir::Builder& b, const std::vector<ir::ValueId>& tensors, int64_t ranks);
/// x on its owner, `kept` on the other ranks, where that lies. Op `put_owned` {ranks, owner}.
ir::ValueId put_owned(ir::Builder& b, ir::ValueId x, ir::ValueId kept, int64_t ranks, int64_t owner);
/// The owner's x on every rank, where `kept` lies. Op `from_owner` {ranks, owner}.
ir::ValueId from_owner(ir::Builder& b, ir::ValueId x, ir::ValueId kept, int64_t ranks, int64_t owner);

/// random i32[4] -> i32[6], for the update of a piece of so many elements (0: not of a piece), or of one of
/// several tensors that have owners, whose keys are `keys`: see update_draws.h. Op `own_draws` {ranks,
/// elements, keys}.
ir::ValueId own_draws(ir::Builder& b, ir::ValueId random, int64_t ranks, int64_t elements,
                      const std::vector<int64_t>& keys);

/// f32[gradients]: the sum of squares of each, bit for bit those of sum_squares_sweep. `elements` are those
/// of the whole gradients; one that has fewer is this rank's piece. `rounded`: the dtype that they are
/// rounded to before. Ops `own_chunks` {ranks, elements, held}: i32[gradients, kChunkWords], where this
/// rank's chunks lie; `chunk_squares` {ranks, elements, rounded}: i32[chunks, 2], the halves of a double
/// each; `sum_chunk_squares` {pieces}: the chunks of a piece of each gradient.
ir::ValueId squares_over_ranks(ir::Builder& b, const std::vector<ir::ValueId>& gradients,
                               const std::vector<int64_t>& elements, int64_t ranks, ir::DType rounded);

/// What a rank keeps of a tensor that is cut into pieces: elements; of a block type bytes of its storage.
ir::TensorType piece_type(const ir::TensorType& whole, int64_t ranks);

/// Chunks of this rank's piece of a tensor, in what it holds.
struct OwnChunks {
  int32_t first = 0;  ///< chunks before them
  int32_t count = 0;
  int32_t last_elements = 0;  ///< of the last one; the others are whole
};
inline constexpr int64_t kChunkWords = 3;
/// Of a tensor of so many elements, of which rank `rank` holds `held`: all, or its piece.
OwnChunks own_chunks_of(int64_t elements, int64_t held, int64_t ranks, int64_t rank);

}  // namespace plimsoll::ops
