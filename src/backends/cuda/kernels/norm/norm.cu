// RMS and layer normalisation: a block a row. The gradients of weight and bias are sums of columns (sums.cu).
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/norm_args.h"
#include "backends/cuda/kernels/norm/row_strides.cuh"

namespace plimsoll::cuda {

extern "C" __global__ void norm_rows(NormRows a) {
  __shared__ float shared[32];
  const i64 row = blockIdx.x, out = row * a.cols, x = row_begin(a.x_rows, row),
            residual = row_begin(a.residual_rows, row);
  const bool vec = a.cols % 8 == 0 && by_eights(a.x_rows) && by_eights(a.residual_rows) && aligned16(a.x) &&
                   aligned16(a.residual) && aligned16(a.weight) && aligned16(a.bias) && aligned16(a.sum) &&
                   aligned16(a.y);
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
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    float w[8], b[8] = {};
    if (!once) load_part(read, from + c, n, v, vec);
    load_part(a.weight, c, n, w, vec);
    if (given(a.bias)) load_part(a.bias, c, n, b, vec);
    for (int e = 0; e < 8; ++e) {
      v[e] = (v[e] - mean) * rstd * w[e];
      if (given(a.bias)) v[e] += b[e];
    }
    store_part(a.y, out + c, n, v, vec);
  }
}

// dx may lie where dy, x or d_residual does: each thread writes what it alone has read.
extern "C" __global__ void norm_grad_rows(NormGrad a) {
  __shared__ float shared[32];
  const i64 row = blockIdx.x, dy = row_begin(a.dy_rows, row), x = row_begin(a.x_rows, row),
            residual = row_begin(a.residual_rows, row);
  const bool vec = a.cols % 8 == 0 && by_eights(a.x_rows) && by_eights(a.dy_rows) &&
                   by_eights(a.residual_rows) && aligned16(a.x) && aligned16(a.dy) && aligned16(a.weight) &&
                   aligned16(a.d_residual) && aligned16(a.dx);
  const bool layer = a.mean != nullptr;
  const float rstd = a.rstd[row], mean = layer ? a.mean[row] : 0.0f;
  const bool once = a.cols <= 8 * (i64)blockDim.x;  // a thread takes eight elements: they stay in registers
  float along = 0, total = 0, d[8], v[8], w[8];
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    load_part(a.dy, dy + c, n, d, vec), load_part(a.x, x + c, n, v, vec), load_part(a.weight, c, n, w, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      along += d[e] * w[e] * ((v[e] - mean) * rstd);
      total += d[e] * w[e];
    }
  }
  along = block_sum(along, shared) / (float)a.cols;
  total = layer ? block_sum(total, shared) / (float)a.cols : 0.0f;
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    float r[8] = {};
    if (!once)
      load_part(a.dy, dy + c, n, d, vec), load_part(a.x, x + c, n, v, vec), load_part(a.weight, c, n, w, vec);
    if (given(a.d_residual)) load_part(a.d_residual, residual + c, n, r, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float g = layer ? d[e] * w[e] - total : d[e] * w[e];
      const float dx = rstd * (g - (v[e] - mean) * rstd * along);
      d[e] = given(a.d_residual) ? r[e] + dx : dx;
    }
    store_part(a.dx, row * a.cols + c, n, d, vec);
  }
}

}  // namespace plimsoll::cuda
