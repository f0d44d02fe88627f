// RMS and layer normalisation: a block a row; gradients of weight and bias as granules' sums of columns.

struct NormRows {
  Operand x, residual, weight, bias, sum,
      y;               // residual and sum where an addition goes before; bias of layer_norm
  float *mean, *rstd;  // mean of layer_norm
  i64 cols, x_stride, residual_stride;
  float eps;
};
extern "C" __global__ void norm_rows(NormRows a) {
  __shared__ float shared[32];
  const i64 row = blockIdx.x, out = row * a.cols;
  const bool vec = a.cols % 8 == 0 && a.x_stride % 8 == 0 && a.residual_stride % 8 == 0 && aligned16(a.x) &&
                   aligned16(a.residual) && aligned16(a.weight) && aligned16(a.bias) && aligned16(a.sum) &&
                   aligned16(a.y);
  const bool adds = given(a.sum), layer = a.mean != nullptr;
  const Operand read = adds ? a.sum : a.x;  // what is normalised, as it is stored
  const i64 from = adds ? out : row * a.x_stride;
  float total = 0, squares = 0;
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    float v[8] = {};
    if (n == 8) {
      load8(a.x, row * a.x_stride + c, v, vec);
    } else {
      for (int e = 0; e < n; ++e) v[e] = load(a.x, row * a.x_stride + c + e);
    }
    if (adds) {
      float r[8] = {};
      if (n == 8) {
        load8(a.residual, row * a.residual_stride + c, r, vec);
      } else {
        for (int e = 0; e < n; ++e) r[e] = load(a.residual, row * a.residual_stride + c + e);
      }
      for (int e = 0; e < 8; ++e) v[e] = rounded_to(v[e] + r[e], a.sum.dtype);
      if (n == 8) {
        store8(a.sum, out + c, v, vec);
      } else {
        for (int e = 0; e < n; ++e) store(a.sum, out + c + e, v[e]);
      }
    }
    for (int e = 0; e < 8; ++e) total += v[e], squares += v[e] * v[e];
  }
  float mean = 0;
  if (layer) {
    mean = block_sum(total, shared) / (float)a.cols;
    squares = 0;
    for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
      float v[8];
      const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
      if (n == 8) {
        load8(read, from + c, v, vec);
      } else {
        for (int e = 0; e < n; ++e) v[e] = load(read, from + c + e);
      }
      for (int e = 0; e < n; ++e) squares += (v[e] - mean) * (v[e] - mean);
    }
  }
  const float rstd = 1.0f / sqrtf(block_sum(squares, shared) / (float)a.cols + a.eps);
  if (threadIdx.x == 0) {
    a.rstd[row] = rstd;
    if (layer) a.mean[row] = mean;
  }
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    if (a.cols - c >= 8) {
      float v[8], w[8], b[8] = {};
      load8(read, from + c, v, vec), load8(a.weight, c, w, vec);
      if (given(a.bias)) load8(a.bias, c, b, vec);
      for (int e = 0; e < 8; ++e) {
        v[e] = (v[e] - mean) * rstd * w[e];
        if (given(a.bias)) v[e] += b[e];
      }
      store8(a.y, out + c, v, vec);
    } else {
      for (i64 k = c; k < a.cols; ++k) {
        const float v = (load(read, from + k) - mean) * rstd * load(a.weight, k);
        store(a.y, out + k, given(a.bias) ? v + load(a.bias, k) : v);
      }
    }
  }
}

struct NormGrad {
  Operand dy, x, weight, d_residual, dx;  // d_residual is added where given
  const float *mean, *rstd;               // mean of layer_norm
  i64 cols, dy_stride, x_stride, residual_stride;
};
__device__ __forceinline__ void norm_load(const Operand& x, i64 i, int n, float* v, bool vec) {
  if (n == 8) return load8(x, i, v, vec);
#pragma unroll
  for (int e = 0; e < 8; ++e) v[e] = e < n ? load(x, i + e) : 0.0f;
}
// dx may lie where dy, x or d_residual does: each thread writes what it alone has read.
extern "C" __global__ void norm_grad_rows(NormGrad a) {
  __shared__ float shared[32];
  const i64 row = blockIdx.x, dy = row * a.dy_stride, x = row * a.x_stride;
  const bool vec = a.cols % 8 == 0 && a.x_stride % 8 == 0 && a.dy_stride % 8 == 0 &&
                   a.residual_stride % 8 == 0 && aligned16(a.x) && aligned16(a.dy) && aligned16(a.weight) &&
                   aligned16(a.d_residual) && aligned16(a.dx);
  const bool layer = a.mean != nullptr;
  const float rstd = a.rstd[row], mean = layer ? a.mean[row] : 0.0f;
  float along = 0, total = 0;
  for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
    const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
    float d[8], v[8], w[8];
    norm_load(a.dy, dy + c, n, d, vec), norm_load(a.x, x + c, n, v, vec), norm_load(a.weight, c, n, w, vec);
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
    float d[8], v[8], w[8], r[8] = {};
    norm_load(a.dy, dy + c, n, d, vec), norm_load(a.x, x + c, n, v, vec), norm_load(a.weight, c, n, w, vec);
    if (given(a.d_residual)) norm_load(a.d_residual, row * a.residual_stride + c, n, r, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float g = layer ? d[e] * w[e] - total : d[e] * w[e];
      const float dx = rstd * (g - (v[e] - mean) * rstd * along);
      d[e] = given(a.d_residual) ? r[e] + dx : dx;
    }
    if (n == 8) {
      store8(a.dx, row * a.cols + c, d, vec);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e < n) store(a.dx, row * a.cols + c + e, d[e]);
    }
  }
}

// Sums over a granule's rows of dy, or, with `rstd`, of dy * (x - mean) * rstd, into partial [granules,
// cols]. A block of 32 x 8 threads takes 32 columns of one granule.
struct ColumnSums {
  Operand dy, x;
  const float *mean, *rstd;
  float* partial;
  Granules granules;
  i64 cols, dy_stride, x_stride;
};
extern "C" __global__ void sum_columns(ColumnSums a) {
  __shared__ float sums[8][33];
  const i64 c = blockIdx.x * 32ll + threadIdx.x, granule = blockIdx.y;
  const i64 begin = granule_begin(a.granules, granule), end = granule_end(a.granules, granule);
  float sum = 0;
  if (c < a.cols)
    for (i64 r = begin + threadIdx.y; r < end; r += 8) {
      float v = load(a.dy, r * a.dy_stride + c);
      if (a.rstd != nullptr)
        v *= (load(a.x, r * a.x_stride + c) - (a.mean != nullptr ? a.mean[r] : 0.0f)) * a.rstd[r];
      sum += v;
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && c < a.cols) {
    for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x];
    a.partial[granule * a.cols + c] = sum;
  }
}
// acc, where given, then the granules in order.
extern "C" __global__ void add_partials(const float* partial, i64 granules, i64 cols, Operand acc,
                                        Operand out) {
  const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (c >= cols) return;
  float sum = partial[c];
  if (given(acc)) sum = load(acc, c) + sum;
  for (i64 g = 1; g < granules; ++g) sum += partial[g * cols + c];
  store(out, c, sum);
}
