// RMS and layer normalisation: a block a row. The gradients of weight and bias are sums of columns (sums.cu).
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/norm.cuh"

namespace plimsoll::cuda {

extern "C" __global__ void norm_rows(NormRows a) {
  begin_grid();
  const bool vec = are_eights(a) && aligned16(a.y);
  normalise_row(a, vec, [&](i64 row, i64 c, int n, const float(&v)[8]) {
    if (n > 0) store_part(a.y, row * a.cols + c, n, v, vec);
  });
}

// dx may lie where dy, x or d_residual does: each thread writes what it alone has read.
extern "C" __global__ void norm_grad_rows(NormGrad a) {
  begin_grid();
  __shared__ float shared[32];
  const i64 row = blockIdx.x, dy = row_begin(a.dy_rows, row), x = row_begin(a.x_rows, row),
            residual = row_begin(a.residual_rows, row);
  const bool vec = a.cols % 8 == 0 && by_eights(a.x_rows) && by_eights(a.dy_rows) &&
                   by_eights(a.residual_rows) && aligned16(a.x) && aligned16(a.dy) && aligned16(a.weight) &&
                   aligned16(a.d_residual) && aligned16(a.dx) && aligned16(a.rounded);
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
    if (given(a.rounded)) store_part(a.rounded, row * a.cols + c, n, d, vec);
  }
}

}  // namespace plimsoll::cuda
