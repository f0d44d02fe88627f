// Keys and values that generation keeps, and attention over them. A block takes all heads of queries that
// share keys and values (up to as many as its registers hold), so that each is read once. Positions go by
// stretches of kCachedStretch: eight warps take every eighth position of one and join in order, and stretches
// join in order, within the block or, where there are too few blocks, in attention_cached_join. Their results
// are bit-identical.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/kv_cache_args.h"

namespace plimsoll::cuda {
namespace {

constexpr int kWarps = kCachedThreads / 32;

__device__ __forceinline__ void load4(const Operand& x, i64 i, float* v) {
  if (x.dtype == kF32) {
    const float4 all = *(const float4*)((const float*)x.data + i);
    v[0] = all.x, v[1] = all.y, v[2] = all.z, v[3] = all.w;
  } else {
    const u64 all = *(const u64*)((const u16*)x.data + i);
    unpack2((u32)all, x.dtype, v), unpack2((u32)(all >> 32), x.dtype, v + 2);
  }
}
// kEach elements of a head from `first` + lane * kEach on, zeros behind its end.
template <int kEach>
__device__ __forceinline__ void load_lane(const Operand& x, i64 first, int lane, int dim, bool vec,
                                          float* v) {
  const int d = lane * kEach;
  if (vec && d + kEach <= dim) {
#pragma unroll
    for (int e = 0; e < kEach; e += 4) load4(x, first + d + e, v + e);
    return;
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) v[e] = d + e < dim ? load(x, first + d + e) : 0.0f;
}

// The softmax of the scores so far, of one head: their largest, the sum of weights, weighted values.
template <int kEach>
struct Softmax {
  float most, total, out[kEach];
};
template <int kEach>
__device__ __forceinline__ void add_value(Softmax<kEach>& s, float score, const float* v) {
  const float highest = fmaxf(s.most, score), factor = expf(s.most - highest), w = expf(score - highest);
  s.total = s.total * factor + w;
  s.most = highest;
#pragma unroll
  for (int e = 0; e < kEach; ++e) s.out[e] = s.out[e] * factor + w * v[e];
}

// A head's element over the stretches so far.
struct Joined {
  float most, total, sum;
};
__device__ __forceinline__ void join(Joined& all, float most, float total, float sum) {
  if (total == 0.0f) return;  // nothing of it is seen
  const float highest = fmaxf(all.most, most), before = expf(all.most - highest), now = expf(most - highest);
  all.total = fmaf(all.total, before, __fmul_rn(total, now));
  all.sum = fmaf(all.sum, before, __fmul_rn(sum, now));
  all.most = highest;
}

// What a block has of a stretch: of each warp, of each head.
template <int kEach, int kHeads>
struct Warps {
  float most[kWarps][kHeads], total[kWarps][kHeads], out[kWarps][kHeads][32 * kEach];
};
template <int kEach, int kHeads>
__device__ __forceinline__ Joined join_warps(const Warps<kEach, kHeads>& warps, int h, int d) {
  Joined all = {__int_as_float(0xff800000), 0, 0};
  for (int w = 0; w < kWarps; ++w) join(all, warps.most[w][h], warps.total[w][h], warps.out[w][h][d]);
  return all;
}

// A block's place: its token, the first of its heads of queries and how many there are, the positions [first,
// end) that the token sees.
struct Place {
  i64 batch, token, kv, head, first, end;
  int count;
};
template <int kHeads>
__device__ __forceinline__ Place place_of(const CachedAttention& a) {
  Place p;
  const int group = a.heads / a.kv_heads, chunks = (group + kHeads - 1) / kHeads;
  const int skipped = (int)(blockIdx.y % chunks) * kHeads;
  p.token = blockIdx.x, p.batch = p.token / a.tokens, p.kv = blockIdx.y / chunks;
  p.head = p.kv * group + skipped;
  p.count = group - skipped < kHeads ? group - skipped : kHeads;
  const i64 position = a.start[p.batch] + p.token % a.tokens,
            last = position < a.size ? position : a.size - 1;
  const i64 first = a.window > 0 ? position - a.window + 1 : 0;
  p.first = first < 0 ? 0 : first > last ? last : first, p.end = last + 1;
  return p;
}

// Positions [begin, end), every eighth for each warp.
template <int kEach, int kHeads>
__device__ __forceinline__ void attend(const CachedAttention& a, const Place& p, i64 begin, i64 end,
                                       const float (&q)[kHeads][kEach], bool vec,
                                       Warps<kEach, kHeads>& warps) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const i64 kv_stride = (i64)a.kv_heads * a.head_dim;
  Softmax<kEach> s[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    s[h].most = __int_as_float(0xff800000), s[h].total = 0;
#pragma unroll
    for (int e = 0; e < kEach; ++e) s[h].out[e] = 0;
  }
  for (i64 j = begin + warp; j < end; j += kWarps) {
    const i64 row = (p.batch * a.size + j) * kv_stride + p.kv * a.head_dim;
    float k[kEach], v[kEach];
    load_lane<kEach>(a.k, row, lane, a.head_dim, vec, k);
    load_lane<kEach>(a.v, row, lane, a.head_dim, vec, v);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= p.count) continue;
      float score = 0;
#pragma unroll
      for (int e = 0; e < kEach; ++e) score = fmaf(q[h][e], k[e], score);
      add_value<kEach>(s[h], warp_sum(score) * a.scale, v);
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane == 0) warps.most[warp][h] = s[h].most, warps.total[warp][h] = s[h].total;
#pragma unroll
    for (int e = 0; e < kEach; ++e) warps.out[warp][h][lane * kEach + e] = s[h].out[e];
  }
}

// Block (token, heads of keys times their chunks, stretch where they are parts).
template <int kEach, int kHeads>
__device__ __forceinline__ void attend_heads(const CachedAttention& a, Warps<kEach, kHeads>& warps) {
  constexpr int kElements = 32 * kEach * kHeads, kMine = (kElements + kCachedThreads - 1) / kCachedThreads;
  const Place p = place_of<kHeads>(a);
  const bool vec = a.head_dim % 4 == 0 && aligned16(a.q) && aligned16(a.k) && aligned16(a.v);
  float q[kHeads][kEach];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) q[h][e] = 0;
    if (h < p.count)
      load_lane<kEach>(a.q, (p.token * a.heads + p.head + h) * a.head_dim, threadIdx.x & 31, a.head_dim, vec,
                       q[h]);
  }
  Joined mine[kMine];
#pragma unroll
  for (int r = 0; r < kMine; ++r) mine[r] = {__int_as_float(0xff800000), 0, 0};
  const bool in_parts = a.parts != nullptr;
  const i64 from = in_parts ? blockIdx.z : p.first / kCachedStretch,
            to = in_parts ? from + 1 : (p.end + kCachedStretch - 1) / kCachedStretch;
  for (i64 stretch = from; stretch < to; ++stretch) {
    const i64 begin = stretch * kCachedStretch, end = begin + kCachedStretch;
    attend<kEach, kHeads>(a, p, begin > p.first ? begin : p.first, end < p.end ? end : p.end, q, vec, warps);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kMine; ++r) {
      const int i = threadIdx.x + r * kCachedThreads;
      if (i >= p.count * a.head_dim) continue;
      const Joined part = join_warps<kEach, kHeads>(warps, i / a.head_dim, i % a.head_dim);
      join(mine[r], part.most, part.total, part.sum);
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kMine; ++r) {
    const int i = threadIdx.x + r * kCachedThreads;
    if (i >= p.count * a.head_dim) continue;
    const i64 at = p.token * a.heads + p.head + i / a.head_dim;
    const int d = i % a.head_dim;
    if (!in_parts) {
      store(a.out, at * a.head_dim + d, mine[r].sum / mine[r].total);
      continue;
    }
    float* part = a.parts + (at * gridDim.z + blockIdx.z) * (a.head_dim + 2);
    part[2 + d] = mine[r].sum;
    if (d == 0) part[0] = mine[r].most, part[1] = mine[r].total;
  }
}

}  // namespace

extern "C" __global__ void cache_update(CacheUpdate args) {
  begin_grid();
  const i64 batch = blockIdx.x / args.tokens, position = args.start[batch] + blockIdx.x % args.tokens;
  if (position >= args.size) return;
  for (i64 c = threadIdx.x; c < args.cols; c += blockDim.x)
    store(args.cache, (batch * args.size + position) * args.cols + c,
          load(args.x, blockIdx.x * args.cols + c));
}

extern "C" __global__ void __launch_bounds__(kCachedThreads)
    attention_cached_128_1(const __grid_constant__ CachedAttention a) {
  begin_grid();
  __shared__ Warps<4, 1> warps;
  attend_heads<4, 1>(a, warps);
}
extern "C" __global__ void __launch_bounds__(kCachedThreads)
    attention_cached_128_4(const __grid_constant__ CachedAttention a) {
  begin_grid();
  __shared__ Warps<4, 4> warps;
  attend_heads<4, 4>(a, warps);
}
extern "C" __global__ void __launch_bounds__(kCachedThreads, 1)
    attention_cached_128_8(const __grid_constant__ CachedAttention a) {
  begin_grid();
  __shared__ Warps<4, 8> warps;
  attend_heads<4, 8>(a, warps);
}
extern "C" __global__ void __launch_bounds__(kCachedThreads)
    attention_cached_256_1(const __grid_constant__ CachedAttention a) {
  begin_grid();
  __shared__ Warps<8, 1> warps;
  attend_heads<8, 1>(a, warps);
}
extern "C" __global__ void __launch_bounds__(kCachedThreads)
    attention_cached_256_4(const __grid_constant__ CachedAttention a) {
  begin_grid();
  __shared__ Warps<8, 4> warps;
  attend_heads<8, 4>(a, warps);
}

// A block a head of a token.
extern "C" __global__ void attention_cached_join(const __grid_constant__ CachedAttention a) {
  begin_grid();
  const i64 at = blockIdx.x, each = a.head_dim + 2;
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    Joined all = {__int_as_float(0xff800000), 0, 0};
    for (int s = 0; s < a.stretches; ++s) {
      const float* part = a.parts + (at * a.stretches + s) * each;
      join(all, part[0], part[1], part[2 + d]);
    }
    store(a.out, at * a.head_dim + d, all.sum / all.total);
  }
}

}  // namespace plimsoll::cuda
