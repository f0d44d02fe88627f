// RMS and layer normalisation of a row by a block, handed on eight elements at a time.
#pragma once

#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/norm_args.h"
#include "backends/cuda/kernels/norm/row_strides.cuh"

namespace plimsoll::cuda {

// Whether eight elements of each operand may be read at once.
__device__ __forceinline__ bool are_eights(const NormRows& a) {
  return a.cols % 8 == 0 && by_eights(a.x_rows) && by_eights(a.residual_rows) && aligned16(a.x) &&
         aligned16(a.residual) && aligned16(a.weight) && aligned16(a.bias) && aligned16(a.sum);
}

// The row of the block: store(row, col, n, v) gets n of eight elements, with zeros behind them. All threads
// call it as often, so that it may look at its neighbours'.
template <typename Store>
__device__ __forceinline__ void normalise_row(const NormRows& a, bool vec, Store store) {
  __shared__ float shared[32];
  const i64 row = blockIdx.x, out = row * a.cols, x = row_begin(a.x_rows, row),
            residual = row_begin(a.residual_rows, row);
  const bool adds = given(a.sum), layer = a.mean != nullptr;
  const Operand read = adds ? a.sum : a.x;  // what is normalised, as it is stored
  const i64 from = adds ? out : x;
  const bool once = a.cols <= 8 * (i64)blockDim.x;  // a thread takes eight elements: they stay in registers
  float total = 0, squares = 0, v[8] = {};
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    load_part(a.x, x + c, n, v, vec);
    if (adds) {
      float r[8];
      load_part(a.residual, residual + c, n, r, vec);
      for (int e = 0; e < 8; ++e) v[e] = rounded_to(v[e] + r[e], a.sum.dtype);
      store_part(a.sum, out + c, n, v, vec);
    }
    for (int e = 0; e < 8; ++e) total += v[e], squares += v[e] * v[e];
  }
  float mean = 0;
  if (layer) {
    mean = block_sum(total, shared) / (float)a.cols;
    squares = 0;
    for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
      const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
      if (!once) load_part(read, from + c, n, v, vec);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e < n) squares += (v[e] - mean) * (v[e] - mean);
    }
  }
  const float rstd = 1.0f / sqrtf(block_sum(squares, shared) / (float)a.cols + a.eps);
  if (threadIdx.x == 0) {
    a.rstd[row] = rstd;
    if (layer) a.mean[row] = mean;
  }
  for (i64 first = 0; first < a.cols; first += 8 * blockDim.x) {
    const i64 c = first + 8 * (i64)threadIdx.x, rest = a.cols - c;
    const int n = rest <= 0 ? 0 : rest < 8 ? (int)rest : 8;
    float w[8], b[8] = {};
    if (!once) load_part(read, n == 0 ? from : from + c, n, v, vec);
    load_part(a.weight, n == 0 ? 0 : c, n, w, vec);
    if (given(a.bias)) load_part(a.bias, n == 0 ? 0 : c, n, b, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float y = (v[e] - mean) * rstd * w[e];
      if (given(a.bias)) y += b[e];
      v[e] = e < n ? y : 0.0f;
    }
    store(row, c, n, v);
  }
}

}  // namespace plimsoll::cuda
