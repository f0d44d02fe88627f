// Keys and values that generation keeps, and attention over them.
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/kv_cache_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void cache_update(CacheUpdate args) {
  const i64 batch = blockIdx.x / args.tokens, position = args.start[batch] + blockIdx.x % args.tokens;
  if (position >= args.size) return;
  for (i64 c = threadIdx.x; c < args.cols; c += blockDim.x)
    store(args.cache, (batch * args.size + position) * args.cols + c,
          load(args.x, blockIdx.x * args.cols + c));
}

// A block a head of a token: eight warps take every eighth position, then join in order. head_dim at most
// kMostCachedHead.
extern "C" __global__ void __launch_bounds__(256) attention_cached(CachedAttention a) {
  __shared__ float most_of[8], total_of[8], out_of[8][kMostCachedHead];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 at = blockIdx.x, head = at % a.heads, token = at / a.heads, batch = token / a.tokens;
  const i64 position = a.start[batch] + token % a.tokens;
  const i64 last = position < a.size ? position : a.size - 1;
  i64 first = a.window > 0 ? position - a.window + 1 : 0;
  first = first < 0 ? 0 : first > last ? last : first;
  const i64 kv = head / (a.heads / a.kv_heads), kv_stride = (i64)a.kv_heads * a.head_dim;
  float q[8], o[8] = {}, most = __int_as_float(0xff800000), total = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    q[e] = lane + 32 * e < a.head_dim ? load(a.q, at * a.head_dim + lane + 32 * e) : 0.0f;
  for (i64 j = first + warp; j <= last; j += 8) {
    const i64 row = (batch * a.size + j) * kv_stride + kv * a.head_dim;
    float score = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (lane + 32 * e < a.head_dim) score = fmaf(q[e], load(a.k, row + lane + 32 * e), score);
    score = warp_sum(score);
    score *= a.scale;
    const float highest = fmaxf(most, score), factor = expf(most - highest), w = expf(score - highest);
    total = total * factor + w;
    most = highest;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (lane + 32 * e < a.head_dim) o[e] = o[e] * factor + w * load(a.v, row + lane + 32 * e);
  }
  if (lane == 0) most_of[warp] = most, total_of[warp] = total;
#pragma unroll
  for (int e = 0; e < 8; ++e) out_of[warp][lane + 32 * e] = o[e];
  __syncthreads();
  const int d = threadIdx.x;
  if (d >= a.head_dim) return;
  most = most_of[0];
  for (int w = 1; w < 8; ++w) most = fmaxf(most, most_of[w]);
  float sum = 0;
  total = 0;
  for (int w = 0; w < 8; ++w) {
    if (total_of[w] == 0.0f) continue;  // took no position
    const float factor = expf(most_of[w] - most);
    total += total_of[w] * factor;
    sum += out_of[w][d] * factor;
  }
  store(a.out, at * a.head_dim + d, sum / total);
}

}  // namespace plimsoll::cuda
