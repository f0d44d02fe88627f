// Arithmetic element by element, casts and copies: eight elements a thread.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"

namespace plimsoll::cuda {

// The first of eight elements, or beyond n.
__device__ __forceinline__ i64 first_of_8() { return 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x); }

extern "C" __global__ void binary(Binary args) {
  begin_grid();
  const bool vec = aligned16(args.x) && aligned16(args.y) && aligned16(args.out);
  const i64 i = first_of_8();
  if (i + 8 <= args.n) {
    float a[8], b[8];
    load8(args.x, i, a, vec), load8(args.y, i, b, vec);
    for (int e = 0; e < 8; ++e) a[e] = args.what == BinaryOp::kAdd ? a[e] + b[e] : a[e] * b[e];
    store8(args.out, i, a, vec);
  } else {
    for (i64 k = i; k < args.n; ++k)
      store(args.out, k,
            args.what == BinaryOp::kAdd ? load(args.x, k) + load(args.y, k)
                                        : load(args.x, k) * load(args.y, k));
  }
}

// Times s[0], where that is given: a cast else.
extern "C" __global__ void scaled(Scaled args) {
  begin_grid();
  const bool vec = aligned16(args.x) && aligned16(args.out);
  const i64 i = first_of_8();
  const float factor = args.s != nullptr ? args.s[0] : 1.0f;
  if (i + 8 <= args.n) {
    float a[8];
    load8(args.x, i, a, vec);
    if (args.s != nullptr)
      for (int e = 0; e < 8; ++e) a[e] *= factor;
    store8(args.out, i, a, vec);
  } else {
    for (i64 k = i; k < args.n; ++k)
      store(args.out, k, args.s != nullptr ? load(args.x, k) * factor : load(args.x, k));
  }
}

extern "C" __global__ void cast_bytes(Scaled args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i < args.n) store(args.out, i, (float)((const unsigned char*)args.x.data)[i]);
}

extern "C" __global__ void bias_add_rows(BiasAddRows args) {
  begin_grid();
  const bool vec = aligned16(args.x) && aligned16(args.bias) && aligned16(args.out);
  const i64 i = first_of_8();
  if (args.cols % 8 == 0) {
    if (i >= args.n) return;
    float a[8], b[8];
    load8(args.x, i, a, vec), load8(args.bias, place_of(i, args.cols).col, b, vec);
    for (int e = 0; e < 8; ++e) a[e] += b[e];
    store8(args.out, i, a, vec);
  } else {
    for (i64 k = i; k < args.n && k < i + 8; ++k)
      store(args.out, k, load(args.x, k) + load(args.bias, place_of(k, args.cols).col));
  }
}

// Rows of a row pitch to dense ones in another dtype; `tf32`: rounded to that.
extern "C" __global__ void cast_rows(CastRows args) {
  begin_grid();
  const i64 n = args.rows * args.cols, i = first_of_8();
  if (i >= n) return;
  if (args.cols % 8 == 0) {
    const bool vec = aligned16(args.x) && aligned16(args.out) && args.stride % 8 == 0;
    float v[8];
    const Place at = place_of(i, args.cols);
    load8(args.x, at.row * args.stride + at.col, v, vec);
    if (args.tf32)
      for (int e = 0; e < 8; ++e) v[e] = rounded_to_tf32(v[e]);
    store8(args.out, i, v, vec);
    return;
  }
  for (i64 k = i; k < n && k < i + 8; ++k) {
    const Place at = place_of(k, args.cols);
    const float v = load(args.x, at.row * args.stride + at.col);
    store(args.out, k, args.tf32 ? rounded_to_tf32(v) : v);
  }
}

// Four axes, the last the innermost; strides in units of `unit` bytes.
extern "C" __global__ void copy_strided(CopyStrided args) {
  begin_grid();
  i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  i64 a = 0, b = 0;
  for (int axis = 3; axis >= 1; --axis) {
    if (args.extent[axis] == 1) continue;
    const Place at = place_of(i, args.extent[axis]);
    i = at.row;
    a += at.col * args.from[axis], b += at.col * args.to[axis];
  }
  if (i >= args.extent[0]) return;
  a += i * args.from[0], b += i * args.to[0];
  if (args.unit == 16)
    ((uint4*)args.to_data)[b] = ((const uint4*)args.from_data)[a];
  else if (args.unit == 4)
    ((u32*)args.to_data)[b] = ((const u32*)args.from_data)[a];
  else if (args.unit == 2)
    ((u16*)args.to_data)[b] = ((const u16*)args.from_data)[a];
  else
    ((char*)args.to_data)[b] = ((const char*)args.from_data)[a];
}

}  // namespace plimsoll::cuda
