// Rows of sequences by index, and positions.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/sequence/rows_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void positions(Positions args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const Place at = place_of(i, args.tokens);
  const int index = args.first + (int)at.col;
  if (args.sign < 0)
    args.out[i] = index - args.start[i];
  else
    args.out[i] = index + (args.start != nullptr ? args.start[at.row] : 0);
}

// Which of the sequence's indices is that row; none: -1. No index, -1, is the last as unsigned.
__device__ __forceinline__ i64 place_among(const int* index, i64 each, unsigned row) {
  i64 low = 0, high = each;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if ((unsigned)index[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low < each && (unsigned)index[low] == row ? low : -1;
}

// A block a row of out.
extern "C" __global__ void gather_rows(GatherRows args) {
  begin_grid();
  const i64 at = blockIdx.x, of = args.back ? args.rows : args.each;
  const i64 sequence = at / of, place = at % of;
  const int* index = args.index + sequence * args.each;
  const i64 row = args.back ? place_among(index, args.each, (unsigned)place) : index[place];
  const i64 from = sequence * args.x_sequence + row * args.x_row;
  for (i64 c = threadIdx.x; c < args.cols; c += blockDim.x)
    store(args.out, at * args.cols + c, row < 0 ? 0.0f : load(args.x, from + c));
}

}  // namespace plimsoll::cuda
