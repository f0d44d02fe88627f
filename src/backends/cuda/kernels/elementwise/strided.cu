// Elements that move along an axis, and by index: a thread an element of the result.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/strided_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ void move_word(const void* from, i64 at, void* to, i64 i, int bytes) {
  if (bytes == 4)
    ((u32*)to)[i] = at < 0 ? 0u : ((const u32*)from)[at];
  else
    ((u16*)to)[i] = at < 0 ? (u16)0 : ((const u16*)from)[at];
}

extern "C" __global__ void along_axis(AlongAxis args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const Place within = place_of(i, args.inner), axis = place_of(within.row, args.extent);
  const i64 place = axis.col - args.start;
  const bool is_there = args.step < 0 || (place >= 0 && place % args.step == 0);
  const i64 from = args.step < 0 ? args.extent - 1 - axis.col : place / args.step;
  const bool has = is_there && from < args.from_extent;
  move_word(args.from, has ? (axis.row * args.from_extent + from) * args.inner + within.col : -1, args.to, i,
            args.bytes);
}

extern "C" __global__ void gather(GatherArgs args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  i64 offset = args.index[i] * args.along, rest = i;
  for (int axis = 5; axis >= 0; --axis) {
    const Place place = place_of(rest, args.extent[axis]);
    offset += place.col * args.stride[axis];
    rest = place.row;
  }
  move_word(args.x, offset, args.y, i, args.bytes);
}

extern "C" __global__ void gather_grad(GatherGradArgs args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  i64 rest = i, first = 0, stride = 1, along = 1, wanted = 0;
  bool is_given = true;
  for (int axis = 5; axis >= 0; --axis) {
    const Place place = place_of(rest, args.extent[axis]);
    rest = place.row;
    if (axis == args.axis) {
      along = stride;
      wanted = place.col;
    } else {
      is_given = is_given && place.col < args.given[axis];
      first += place.col * stride;
    }
    stride *= args.given[axis];
  }
  float sum = 0.0f;
  for (i64 k = 0; is_given && k < args.given[args.axis]; ++k)
    if (args.index[first + k * along] == wanted) sum += load(args.dy, first + k * along);
  store(args.dx, i, sum);
}

}  // namespace plimsoll::cuda
