// Adafactor (ops/tensor_rules.h). Of a matrix:
//
//   rows              g ─► squares' sums over columns ─► row    p ─► its squares
//   columns           g ─► squares' sums over a tile's rows ─► column_moments ─► col, 1 / sqrt(col)
//   row_mean          row ─► its mean
//   updates           g, row, col ─► squares of the update
//   settle            squares ─► rate, and rate over the clip
//   step              g, row, col ─► p
//
// A vector goes vector ─► settle ─► vector_step, filters filters ─► settle ─► filters_step. Sums have an
// order of their own that shapes alone decide: threads of a block, warps in order, rows or tiles in order.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/kernels/optimizer/adafactor_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.cuh"

namespace plimsoll::cuda {
namespace {

enum {
  kRate,
  kDecay,
  kBeta2,
  kOneMinusBeta2,
  kEpsilon1,
  kEpsilon2,
  kThreshold,
  kScale,
  kBeta1,
  kOneMinusBeta1
};
enum { kRowMean, kSettledRate, kStepRate };

// Of an array, by one block.
__device__ __forceinline__ double array_total(const double* values, i64 n, double* shared) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += values[i];
  return block_sum(sum, shared);
}

__device__ __forceinline__ float sum_of_squares(const float* v) {
  float sum = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e) sum = fmaf(v[e], v[e], sum);
  return sum;
}
__device__ __forceinline__ float param_squares(const Adafactor& a, i64 i, int n, bool vec) {
  float p[8];
  load_some(a.t.param, i, n, p, vec);
  return sum_of_squares(p);
}
// 1 / sqrt of a row's moment relative to their mean.
__device__ __forceinline__ float row_factor(const Adafactor& a, i64 row) {
  return (float)(1.0 / sqrt((double)a.row[row] / a.scalars[kRowMean]));
}
__device__ __forceinline__ float next_moment(const Adafactor& a, float before, float mean_square) {
  const float mean = mean_square + a.t.group[kEpsilon1];
  return fmaf(before, a.t.group[kBeta2], a.t.group[kOneMinusBeta2] * mean);
}

// Of filters: a clipped gradient; the squares' sum of `count` of them; 1 / sqrt of the second moment.
__device__ __forceinline__ float one_gradient(const Adafactor& a, i64 i) {
  return __fmul_rn(rounded_to(load(a.t.grad, i), a.t.rounded), a.t.clip[0]);
}
__device__ __forceinline__ float squares_of(const Adafactor& a, i64 first, i64 stride, i64 count) {
  float sum = 0;
  for (i64 t = 0; t < count; ++t) {
    const float g = one_gradient(a, first + t * stride);
    sum = fmaf(g, g, sum);
  }
  return sum;
}
__device__ __forceinline__ i64 filter_place(const Adafactor& a, i64 filter, i64 extent, i64 at, i64 c) {
  return (filter * extent + at) * a.in + c;
}
__device__ __forceinline__ float filter_factor(const Adafactor& a, i64 filter, i64 h, i64 w, i64 c) {
  float sum = 0;
  for (i64 at = 0; at < a.height; ++at) sum += a.row[filter_place(a, filter, a.height, at, c)];
  const float row = a.row[filter_place(a, filter, a.height, h, c)];
  const float of_row = __fsqrt_rn(__fdiv_rn(__fdiv_rn(sum, (float)a.height), row));
  return __fmul_rn(of_row, __fdiv_rn(1.0f, __fsqrt_rn(a.col[filter_place(a, filter, a.width, w, c)])));
}

// The steps of up to eight elements, into the first moment where there is one, and the parameter's.
__device__ __forceinline__ void finish(const Adafactor& a, i64 i, int n, float* step, bool vec) {
  if (given(a.m)) {
    float m[8];
    load_some(a.m, i, n, m, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      step[e] = fmaf(m[e], a.t.group[kBeta1], __fmul_rn(a.t.group[kOneMinusBeta1], step[e]));
    float stored[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) stored[e] = step[e];
    store_drawn(a.t, a.m, i, n, stored, a.m_result, vec);
  }
  const float decay = (float)(1.0 - (double)a.t.group[kDecay] * a.scalars[kSettledRate]);
  step_param(a.t, i, n, decay, step, vec);
}

}  // namespace

// A block a row.
extern "C" __global__ void adafactor_rows(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  const i64 row = blockIdx.x, first = row * a.cols;
  const bool vec = a.cols % 8 == 0, scales = a.t.group[kScale] != 0.0f;
  double squares = 0, params = 0;
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = some_of(c, a.cols);
    float g[8];
    load_gradient(a.t, first + c, n, g, vec);
    squares += (double)sum_of_squares(g);
    if (scales) params += (double)param_squares(a, first + c, n, vec);
  }
  squares = block_sum(squares, shared);
  params = block_sum(params, shared);
  if (threadIdx.x != 0) return;
  a.row[row] = next_moment(a, a.row[row], (float)(squares / (double)a.cols));
  a.param_squares[row] = params;
}

// Block (columns, tile): a thread a column.
extern "C" __global__ void adafactor_columns(const __grid_constant__ Adafactor a) {
  begin_grid();
  const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x, tile = blockIdx.y;
  if (is_skipped(a.t) || c >= a.cols) return;
  const i64 begin = tile * a.tile_rows, end = begin + a.tile_rows < a.rows ? begin + a.tile_rows : a.rows;
  const float clip = a.t.clip[0];
  float total = 0;
  for (i64 from = begin; from < end; from += 64) {  // few terms a sum
    float sum = 0;
    for (i64 row = from; row < end && row < from + 64; ++row) {
      const float g = __fmul_rn(rounded_to(load(a.t.grad, row * a.cols + c), a.t.rounded), clip);
      sum = fmaf(g, g, sum);
    }
    total += sum;
  }
  a.col_sums[tile * a.cols + c] = total;
}
extern "C" __global__ void adafactor_column_moments(const __grid_constant__ Adafactor a) {
  begin_grid();
  const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (is_skipped(a.t) || c >= a.cols) return;
  float sum = 0;
  for (i64 tile = 0; tile < a.tiles; ++tile) sum += a.col_sums[tile * a.cols + c];
  const float next = next_moment(a, a.col[c], sum / (float)a.rows);
  a.col[c] = next;
  a.col_factors[c] = __fdiv_rn(1.0f, __fsqrt_rn(next));
}

// One block.
extern "C" __global__ void adafactor_row_mean(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  double sum = 0;
  for (i64 row = threadIdx.x; row < a.rows; row += blockDim.x) sum += (double)a.row[row];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) a.scalars[kRowMean] = sum / (double)a.rows;
}

// A block a row.
extern "C" __global__ void adafactor_updates(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  const i64 row = blockIdx.x, first = row * a.cols;
  const bool vec = a.cols % 8 == 0;
  const Operand col_factors = {a.col_factors, kF32, 0};
  double squares = 0;
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = some_of(c, a.cols);
    float g[8], f[8];
    load_gradient(a.t, first + c, n, g, vec);
    load_some(col_factors, c, n, f, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) g[e] *= f[e];
    squares += (double)sum_of_squares(g);
  }
  squares = block_sum(squares, shared);
  const double factor = (double)row_factor(a, row);
  if (threadIdx.x == 0) a.update_squares[row] = factor * factor * squares;
}

// Blocks of kAdafactorBlock elements: the moment, squares of the parameter and of the update.
extern "C" __global__ void adafactor_vector(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  const i64 i = blockIdx.x * (i64)kAdafactorBlock + 8 * (i64)threadIdx.x;
  const int n = some_of(i, a.t.n);
  const Operand moment = {a.v, kF32, 0};
  double params = 0, updates = 0;
  if (n > 0) {
    float g[8], v[8];
    load_gradient(a.t, i, n, g, true);
    load_some(moment, i, n, v, true);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      v[e] = next_moment(a, v[e], g[e] * g[e]);
      g[e] = e < n ? g[e] * __fdiv_rn(1.0f, __fsqrt_rn(v[e])) : 0.0f;
    }
    store_some(moment, i, n, v, true);
    updates = (double)sum_of_squares(g);
    if (a.t.group[kScale] != 0.0f) params = (double)param_squares(a, i, n, true);
  }
  params = block_sum(params, shared);
  updates = block_sum(updates, shared);
  if (threadIdx.x != 0) return;
  a.param_squares[blockIdx.x] = params;
  a.update_squares[blockIdx.x] = updates;
}

// A thread an output and an input: the moments of their matrix [height, width], its squares and the update's.
extern "C" __global__ void adafactor_filters(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  const i64 pair = blockIdx.x * (i64)blockDim.x + threadIdx.x, filter = pair / a.in, c = pair % a.in;
  const i64 first = filter * a.cols + c, line = a.width * a.in;
  double params = 0, updates = 0;
  if (filter < a.rows) {
    for (i64 h = 0; h < a.height; ++h) {
      float& moment = a.row[filter_place(a, filter, a.height, h, c)];
      moment = next_moment(a, moment, squares_of(a, first + h * line, a.in, a.width) / (float)a.width);
    }
    for (i64 w = 0; w < a.width; ++w) {
      float& moment = a.col[filter_place(a, filter, a.width, w, c)];
      moment = next_moment(a, moment, squares_of(a, first + w * a.in, line, a.height) / (float)a.height);
    }
    const bool scales = a.t.group[kScale] != 0.0f;
    for (i64 h = 0; h < a.height; ++h)
      for (i64 w = 0; w < a.width; ++w) {
        const i64 i = first + h * line + w * a.in;
        const float u = one_gradient(a, i) * filter_factor(a, filter, h, w, c);
        const float p = scales ? load(a.t.param, i) : 0.0f;
        updates += (double)__fmul_rn(u, u);
        params += (double)__fmul_rn(p, p);
      }
  }
  params = block_sum(params, shared);
  updates = block_sum(updates, shared);
  if (threadIdx.x != 0) return;
  a.param_squares[blockIdx.x] = params;
  a.update_squares[blockIdx.x] = updates;
}

// One block.
extern "C" __global__ void adafactor_settle(const __grid_constant__ Adafactor a) {
  begin_grid();
  __shared__ double shared[32];
  if (is_skipped(a.t)) return;
  const double elements = (double)a.t.n;
  const double param = sqrt(array_total(a.param_squares, a.sums, shared) / elements);
  const double update = sqrt(array_total(a.update_squares, a.sums, shared) / elements);
  if (threadIdx.x != 0) return;
  double rate = (double)a.t.group[kRate];
  if (a.t.group[kScale] != 0.0f) rate *= fmax((double)a.t.group[kEpsilon2], param);
  a.scalars[kSettledRate] = rate;
  a.scalars[kStepRate] = rate / fmax(1.0, update / (double)a.t.group[kThreshold]);
}

// Blocks of a row's columns, 8 a thread: gridDim.x is rows times blocks of a row.
extern "C" __global__ void adafactor_step(const __grid_constant__ Adafactor a) {
  begin_grid();
  const i64 blocks = gridDim.x / a.rows, row = blockIdx.x / blocks;
  const i64 c = 8 * (blockIdx.x % blocks * (i64)blockDim.x + threadIdx.x), i = row * a.cols + c;
  const int n = some_of(c, a.cols);
  const bool vec = a.cols % 8 == 0;
  if (n == 0) return;
  if (is_skipped(a.t)) return copy_param(a.t, i, n, vec);
  const Operand col_factors = {a.col_factors, kF32, 0};
  const float factor = (float)((double)row_factor(a, row) * a.scalars[kStepRate]);
  float step[8], f[8];
  load_gradient(a.t, i, n, step, vec);
  load_some(col_factors, c, n, f, vec);
#pragma unroll
  for (int e = 0; e < 8; ++e) step[e] = __fmul_rn(__fmul_rn(step[e], f[e]), factor);
  finish(a, i, n, step, vec);
}
extern "C" __global__ void adafactor_vector_step(const __grid_constant__ Adafactor a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)kAdafactorBlock + 8 * (i64)threadIdx.x;
  const int n = some_of(i, a.t.n);
  if (n == 0) return;
  if (is_skipped(a.t)) return copy_param(a.t, i, n, true);
  const Operand moment = {a.v, kF32, 0};
  const float rate = (float)a.scalars[kStepRate];
  float step[8], v[8];
  load_gradient(a.t, i, n, step, true);
  load_some(moment, i, n, v, true);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    step[e] = e < n ? __fmul_rn(__fmul_rn(step[e], __fdiv_rn(1.0f, __fsqrt_rn(v[e]))), rate) : 0.0f;
  finish(a, i, n, step, true);
}
extern "C" __global__ void adafactor_filters_step(const __grid_constant__ Adafactor a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)kAdafactorBlock + 8 * (i64)threadIdx.x;
  const int n = some_of(i, a.t.n);
  if (n == 0) return;
  if (is_skipped(a.t)) return copy_param(a.t, i, n, false);
  const float rate = (float)a.scalars[kStepRate];
  float step[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    step[e] = 0;
    if (e >= n) continue;
    const i64 filter = (i + e) / a.cols, within = (i + e) % a.cols, position = within / a.in;
    const float factor = filter_factor(a, filter, position / a.width, position % a.width, within % a.in);
    step[e] = __fmul_rn(__fmul_rn(one_gradient(a, i + e), factor), rate);
  }
  finish(a, i, n, step, false);
}

}  // namespace plimsoll::cuda
