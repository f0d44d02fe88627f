// Sums of tokens' rows by their ids, in the order of the tokens: gradients of tables.
#pragma once

#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// Where a sum's elements lie: element c of the row of an id at id * id_stride + c * col_stride, c < cols.
struct TokenTable {
  int64_t cols = 0, id_stride = 0, col_stride = 1;
};
/// A table [ids, cols].
inline TokenTable table_of_rows(const TensorRef& out) { return {out.shape().dim(1), out.shape().dim(1), 1}; }

/// Scratch of add_tokens.
int64_t token_sums_bytes(int64_t tokens);
/// `out` holds acc, or, where that is absent, -0.0, the neutral element. Async.
Status begin_token_sums(const TensorRef& acc, const TensorRef& out, Stream& stream);
/// Rows of dy onto `out`, which holds what there was before; `from_zero`: each sum by itself, then added.
/// Tokens of attribute `padding` train nothing. `call` has token_sums_bytes() of workspace. Async.
Status add_tokens(const KernelCall& call, const TensorRef& dy, const TensorRef& ids, const TensorRef& out,
                  const TokenTable& table, bool from_zero, Stream& stream);

}  // namespace plimsoll::cuda
