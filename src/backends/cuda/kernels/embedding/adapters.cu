// Adapters beside an embedding: columns of a table by token, and rows in place of the table's. Sums are in
// the order of the tokens.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/embedding/adapters_args.h"

namespace plimsoll::cuda {

// A thread an element of out.
extern "C" __global__ void embedding_columns(const __grid_constant__ EmbeddingColumns a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.tokens * a.rows) return;
  const i64 token = i / a.rows, row = i - token * a.rows;
  store(a.out, i, load(a.table, row * a.columns + a.ids[token]));
}

// A block a token.
extern "C" __global__ void token_rows(const __grid_constant__ TokenRows a) {
  begin_grid();
  const i64 at = blockIdx.x;
  const int id = a.ids[at];
  int low = 0, high = a.count;  // the first that is not below id
  while (low < high) {
    const int middle = (low + high) / 2;
    if (a.token[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == a.count || a.token[low] != id) return;
  for (i64 c = threadIdx.x; c < a.width; c += blockDim.x)
    store(a.out, at * a.width + c, load(a.rows, (a.first + low) * a.width + c));
}

// Block (row, columns): a thread a column, over all tokens.
extern "C" __global__ void token_rows_grad(const __grid_constant__ TokenRowsGrad a) {
  begin_grid();
  const i64 row = blockIdx.x, c = blockIdx.y * (i64)blockDim.x + threadIdx.x;
  if (c >= a.width) return;
  const int token = a.token[row];
  const i64 to = (a.first + row) * a.width + c;
  float sum = given(a.acc) ? load(a.acc, to) : -0.0f;
  for (i64 at = 0; at < a.tokens; ++at)
    if (a.ids[at] == token) sum += load(a.dy, at * a.width + c);
  store(a.out, to, sum);
}

}  // namespace plimsoll::cuda
