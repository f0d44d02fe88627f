// Ops that move or name data: views, joins, copies, rows of a sequence. The conventions are those of ops.h.
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- structure (structure.cpp, views.cpp, copies.cpp); `state` {name} and `state_assign` {name} are
// Builder::read and Builder::assign

/// The same elements in another shape; a view. Op `reshape` {shape}.
ValueId reshape(Builder& b, ValueId x, std::vector<int64_t> shape);
/// Cuts the last axis into parts of `sizes`; views. Op `split` {sizes}.
std::vector<ValueId> split(Builder& b, ValueId x, std::vector<int64_t> sizes);
/// Joins along the last axis; a copy. Op `concat`.
ValueId concat(Builder& b, std::vector<ValueId> parts);
/// Joins along the first axis, storages of weights that one product reads; a copy. `name`: of the whole, for
/// people. Op `concat_rows` {name?}. Rows of a gradient by `linear_dw` or `sum_rows` are computed apart.
/// (rows.cpp)
ValueId concat_rows(Builder& b, std::vector<ValueId> parts, const std::string& name = {});
/// Cuts the first axis into parts of `sizes`; views.
std::vector<ValueId> split_rows(Builder& b, ValueId x, const std::vector<int64_t>& sizes);
/// A dense copy, of a view too. Op `copy`.
ValueId copy(Builder& b, ValueId x);
/// Begins to copy x into memory of `to`, another space than x's, on a copy queue: kCopyIn to the device,
/// kCopyOut else. Nothing but copy_done reads the result; x may be read meanwhile. Op `copy_start` {to}.
ValueId copy_start(Builder& b, ValueId x, ir::MemorySpace to);
/// The copy that has ended, of a copy_start's result; until here its source lives. Op `copy_done`(copy, x).
ValueId copy_done(Builder& b, ValueId copy);
/// The same values as f32, bf16 or f16, rounded to nearest even; x itself where it is that already. Of u8, as
/// batches bring them, f32 alone, without a derivative. Op `cast` {out?}, absent for f32; its derivative
/// casts back.
ValueId cast(Builder& b, ValueId x, ir::DType dtype);
/// A constant f32 tensor. Op `fill` {shape, value}.
ValueId fill(Builder& b, std::vector<int64_t> shape, double value);

/// What stands in gather_rows' index where there is no row.
inline constexpr int32_t kNoRow = -1;
/// x [B, T, H], index i32[B] or i32[B, n] in [0, T) (whoever writes it has checked it) -> [B, n, H]: row
/// index[b, i] of sequence b, n = 1 where index has one axis. Those of a sequence ascend; behind the last
/// stands kNoRow, whose row is zeros. The axis of the rows stays, so that each sequence is granules of its
/// own in what follows: norm and head of gathered rows keep their bits for any split into micro-batches. Op
/// `gather_rows`; `gather_rows_grad`(dy, index) {rows}: the rows among zeros.
ValueId gather_rows(Builder& b, ValueId x, ValueId index);

}  // namespace plimsoll::ops
