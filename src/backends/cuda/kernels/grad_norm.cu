// Squares of gradients, their norm, clipping. Tensors lie side by side in a launch, in chunks of 16,384
// elements.
struct SquaresTensor {
  Operand x;
  i64 n, first_chunk;
};
struct SquaresBatch {
  SquaresTensor tensors[64];
  i64 chunks;  // of all
  int count, rounded;
};
extern "C" __global__ void sum_squares_chunks(SquaresBatch b, double* sums) {
  __shared__ double shared[8];
  const i64 chunk = blockIdx.x;
  int t = 0;
  while (t + 1 < b.count && b.tensors[t + 1].first_chunk <= chunk) ++t;
  const SquaresTensor x = b.tensors[t];
  const i64 begin = (chunk - x.first_chunk) * 16384, end = begin + 16384 < x.n ? begin + 16384 : x.n;
  const bool vec = aligned16(x.x);
  double sum = 0;
  for (i64 i = begin + 8 * (i64)threadIdx.x; i < end; i += 8 * blockDim.x) {
    const int n = end - i < 8 ? (int)(end - i) : 8;
    float v[8] = {};
    if (n == 8) {
      load8(x.x, i, v, vec);
    } else {
      for (int e = 0; e < n; ++e) v[e] = load(x.x, i + e);
    }
    for (int e = 0; e < 8; ++e) {
      const double d = (double)(x.x.dtype == kF32 ? rounded_to(v[e], b.rounded) : v[e]);
      sum = fma(d, d, sum);
    }
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; ++w) sum += shared[w];
    sums[chunk] = sum;
  }
}
// A block a tensor: its chunks, thread by thread and then the threads in order.
extern "C" __global__ void sum_squares_tensors(SquaresBatch b, const double* sums, float* out) {
  __shared__ double shared[256];
  const int t = blockIdx.x;
  const i64 first = b.tensors[t].first_chunk, end = t + 1 < b.count ? b.tensors[t + 1].first_chunk : b.chunks;
  double sum = 0;
  for (i64 c = first + threadIdx.x; c < end; c += 256) sum += sums[c];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (int i = 0; i < 256; ++i) sum += shared[i];
  out[t] = (float)sum;
}

struct NormBatch {
  const float* squares[128];
  i64 n[128];
  int count;
};
// One block; `total` goes on from batch to batch where `begins` is not set. The last batch gives the norm.
extern "C" __global__ void global_norm(NormBatch b, double* total, int begins, float* norm) {
  __shared__ float part[256];
  double sum = begins ? 0.0 : total[0];
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
  total[0] = sum;
  if (norm != nullptr) norm[0] = (float)sqrt(sum);
}
// A norm that is not a number gives a factor that is none.
extern "C" __global__ void clip_scale(const float* norm, float max_norm, float* out) {
  const float scale = max_norm / (norm[0] + 1e-6f);
  out[0] = scale > 1.0f ? 1.0f : scale;
}
