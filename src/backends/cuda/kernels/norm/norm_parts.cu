// Gradients of normalisations in one pass over dy and x: a block takes some rows of a granule one after the
// other and sums what they give the weight and the bias in registers, eight columns a thread.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/norm_parts_args.h"
#include "backends/cuda/kernels/norm/row_strides.cuh"
#include "backends/cuda/kernels/norm/sums_args.h"

namespace plimsoll::cuda {

// dx may lie where dy, x or d_residual does: each thread writes what it alone has read.
extern "C" __global__ void __launch_bounds__(kMostRowThreads) norm_grad_parts(NormGradParts args) {
  begin_grid();
  __shared__ float shared[32];
  const NormGrad& a = args.rows;
  const i64 granule = blockIdx.x / kPartsOfGranule;
  const i64 begin = granule_begin(args.granules, granule) + blockIdx.x % kPartsOfGranule * kRowsOfPart;
  const i64 limit = granule_end(args.granules, granule);
  const i64 end = begin + kRowsOfPart < limit ? begin + kRowsOfPart : limit;
  if (begin >= end) return;
  const i64 c = 8 * (i64)threadIdx.x;
  const int n = c >= a.cols ? 0 : a.cols - c < 8 ? (int)(a.cols - c) : 8;
  const bool vec = a.cols % 8 == 0 && by_eights(a.x_rows) && by_eights(a.dy_rows) &&
                   by_eights(a.residual_rows) && aligned16(a.x) && aligned16(a.dy) && aligned16(a.weight) &&
                   aligned16(a.d_residual) && aligned16(a.dx) && aligned16(a.rounded);
  const bool layer = a.mean != nullptr;
  float w[8], dw[8] = {}, db[8] = {};
  load_part(a.weight, c, n, w, vec);
  for (i64 row = begin; row < end; ++row) {
    const float rstd = a.rstd[row], mean = layer ? a.mean[row] : 0.0f;
    float d[8], v[8], r[8] = {}, along = 0, total = 0;
    load_part(a.dy, row_begin(a.dy_rows, row) + c, n, d, vec);
    load_part(a.x, row_begin(a.x_rows, row) + c, n, v, vec);
    if (given(a.d_residual)) load_part(a.d_residual, row_begin(a.residual_rows, row) + c, n, r, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      v[e] = (v[e] - mean) * rstd;
      along += d[e] * w[e] * v[e];
      total += d[e] * w[e];
      if (e < n) dw[e] += d[e] * v[e];
      db[e] += d[e];
    }
    along = block_sum(along, shared) / (float)a.cols;
    total = layer ? block_sum(total, shared) / (float)a.cols : 0.0f;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float g = layer ? d[e] * w[e] - total : d[e] * w[e];
      const float dx = rstd * (g - v[e] * along);
      d[e] = given(a.d_residual) ? r[e] + dx : dx;
    }
    store_part(a.dx, row * a.cols + c, n, d, vec);
    if (given(a.rounded)) store_part(a.rounded, row * a.cols + c, n, d, vec);
  }
  const Operand weight_sums{args.weight_sums, kF32, 0}, bias_sums{args.bias_sums, kF32, 0};
  const bool whole = a.cols % 8 == 0;
  store_part(weight_sums, blockIdx.x * a.cols + c, n, dw, whole);
  if (layer) store_part(bias_sums, blockIdx.x * a.cols + c, n, db, whole);
}

// Block (columns, 0: weight or 1: bias): eight granules at once, a row of threads each.
extern "C" __global__ void add_parts(AddParts a) {
  begin_grid();
  __shared__ float sums[kRowsOfBlock][kColumnsOfBlock];
  const i64 c = blockIdx.x * (i64)kColumnsOfBlock + threadIdx.x;
  const float* partial = blockIdx.y == 0 ? a.weight_sums : a.bias_sums;
  const Operand acc = blockIdx.y == 0 ? a.acc_dw : a.acc_db, out = blockIdx.y == 0 ? a.dw : a.db;
  float total = 0;
  for (i64 first = 0; first < a.count; first += kRowsOfBlock) {
    const i64 granule = first + threadIdx.y;
    float sum = 0;
    if (granule < a.count && c < a.cols) {
      const i64 rows = granule_end(a.granules, granule) - granule_begin(a.granules, granule);
      const float* at = partial + granule * kPartsOfGranule * a.cols + c;
      sum = at[0];
      for (i64 part = 1; part * kRowsOfPart < rows; ++part) sum += at[part * a.cols];
    }
    __syncthreads();
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || c >= a.cols) continue;
    for (int k = 0; k < kRowsOfBlock && first + k < a.count; ++k) {
      const float next = sums[k][threadIdx.x];
      total = first + k > 0 ? total + next : given(acc) ? load(acc, c) + next : next;
    }
  }
  if (threadIdx.y == 0 && c < a.cols) store(out, c, total);
}

}  // namespace plimsoll::cuda
