// Broadcasts the bias before a matrix product that adds to it: the bias in each row.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/gemm/linear_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void broadcast_row(BroadcastRow args) {
  begin_grid();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= args.n) return;
  if (args.cols % 8 == 0) {
    const bool vec = aligned16(args.row) && aligned16(args.out);
    float v[8];
    load8(args.row, place_of(i, args.cols).col, v, vec);
    store8(args.out, i, v, vec);
    return;
  }
  for (i64 k = i; k < args.n && k < i + 8; ++k)
    store(args.out, k, load(args.row, place_of(k, args.cols).col));
}

// What follows a product that is added to columns of a result in another dtype than it is summed in.
extern "C" __global__ void add_to_columns(AddToColumns args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const Place place = place_of(i, args.cols);
  const i64 at = place.row * args.width + args.first + place.col;
  store(args.out, at, load(args.out, at) + args.sums[i]);
}

}  // namespace plimsoll::cuda
