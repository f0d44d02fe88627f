// Squares of gradients, their norm, clipping. Tensors lie side by side in a launch.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/optimizer/grad_norm_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void sum_squares_chunks(const __grid_constant__ SquaresBatch b) {
  begin_grid();
  __shared__ double shared[8];
  const i64 chunk = blockIdx.x;
  int t = 0;
  while (t + 1 < b.count && b.tensors[t + 1].first_chunk <= chunk) ++t;
  const SquaresTensor x = b.tensors[t];
  const i64 begin = (chunk - x.first_chunk) * kSquaresChunk,
            end = begin + kSquaresChunk < x.n ? begin + kSquaresChunk : x.n;
  const bool vec = aligned16(x.x);
  double sum = 0;
  for (i64 i = begin + 8 * (i64)threadIdx.x; i < end; i += 8 * blockDim.x) {
    const int n = end - i < 8 ? (int)(end - i) : 8;
    float v[8];
    load_part(x.x, i, n, v, vec);
    for (int e = 0; e < 8; ++e) {
      const double d = (double)(x.x.dtype == kF32 ? rounded_to(v[e], b.rounded) : v[e]);
      sum = fma(d, d, sum);
    }
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) b.sums[chunk] = sum;
}
// A block a tensor: its chunks, thread by thread and then the threads in order.
extern "C" __global__ void sum_squares_tensors(const __grid_constant__ SquaresBatch b) {
  begin_grid();
  __shared__ double shared[256];
  const int t = blockIdx.x;
  const i64 first = b.tensors[t].first_chunk, end = t + 1 < b.count ? b.tensors[t + 1].first_chunk : b.chunks;
  double sum = 0;
  for (i64 c = first + threadIdx.x; c < end; c += 256) sum += b.sums[c];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (int i = 0; i < 256; ++i) sum += shared[i];
  b.out[t] = (float)sum;
}

// One block; `total` goes on from batch to batch where `begins` is not set. The last batch gives the norm.
extern "C" __global__ void global_norm(const __grid_constant__ NormBatch b) {
  begin_grid();
  __shared__ float part[256];
  double sum = b.begins ? 0.0 : b.total[0];
  for (int t = 0; t < b.count; ++t)
    for (i64 at = 0; at < b.n[t]; at += 256) {
      const int n = b.n[t] - at < 256 ? (int)(b.n[t] - at) : 256;
      __syncthreads();
      if ((int)threadIdx.x < n) part[threadIdx.x] = b.squares[t][at + threadIdx.x];
      __syncthreads();
      if (threadIdx.x == 0)
        for (int i = 0; i < n; ++i) sum += (double)part[i];
    }
  if (threadIdx.x != 0) return;
  b.total[0] = sum;
  if (b.norm != nullptr) b.norm[0] = (float)sqrt(sum);
}
// A norm that is not a number gives a factor that is none.
extern "C" __global__ void clip_scale(ClipScale args) {
  begin_grid();
  const float scale = args.max_norm / (args.norm[0] + 1e-6f);
  args.out[0] = scale > 1.0f ? 1.0f : scale;
}

}  // namespace plimsoll::cuda
