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

// A block a row of out.
extern "C" __global__ void gather_rows(GatherRows args) {
  begin_grid();
  const i64 at = blockIdx.x;
  for (i64 c = threadIdx.x; c < args.cols; c += blockDim.x) {
    if (args.back) {
      const i64 sequence = at / args.rows, row = at % args.rows;
      store(args.out, at * args.cols + c,
            row == args.index[sequence] ? load(args.x, sequence * args.x_sequence + c) : 0.0f);
    } else {
      store(args.out, at * args.cols + c,
            load(args.x, at * args.x_sequence + args.index[at] * args.x_row + c));
    }
  }
}

}  // namespace plimsoll::cuda
