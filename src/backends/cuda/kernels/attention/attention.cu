// Attention in tiles, with an online softmax (Dao 2023, arXiv:2307.08691): no matrix of tokens by tokens is
// stored. Forward: a block takes a tile of queries of a head; gradient: one kernel for dq by tiles of
// queries, one for dk and dv by tiles of keys, over the heads of their group in order. Here all arithmetic is
// f32.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/attention/attention_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ bool attn_sees(const Attention& a, const int* start, i64 i, i64 j) {
  if (i >= a.tokens || j >= a.tokens) return false;
  if (a.causal && j > i) return false;
  if (a.window > 0 && (j <= i - a.window || j >= i + a.window)) return false;
  return start == nullptr || (j >= start[i] && i >= start[j]);
}
// What a weight is multiplied with.
__device__ __forceinline__ float attn_kept(const Attention& a, i64 batch, i64 head, i64 i, i64 j) {
  if (a.random == nullptr) return 1.0f;
  const u64 block = (u64)(j / 4 * a.tokens + i);  // as ops/philox.h has it
  const uint4 words = philox4((u32)block, a.random[3] + (u32)batch + ((u32)(block >> 32) << 16), a.random[2],
                              a.key + (u32)head, a.random[0], a.random[1]);
  return (u64)word_of(words, (int)(j & 3)) >= a.threshold ? a.kept : 0.0f;
}

// Rows `row0` .. + B of a head from element `first` on, as f32, zeros beyond `tokens` and `dim`.
template <int B, int D>
__device__ __forceinline__ void attn_load(float* to, const Operand& x, i64 first, i64 stride, i64 row0,
                                          i64 tokens, int dim) {
  const bool vec = stride % 8 == 0 && first % 8 == 0 && aligned16(x);
  for (int t = threadIdx.x; t < B * (D / 8); t += 256) {
    const int row = t / (D / 8), d = t % (D / 8) * 8;
    float v[8] = {};
    const i64 at = first + (row0 + row) * stride + d;
    if (row0 + row < tokens) {
      if (d + 8 <= dim) {
        load8(x, at, v, vec);
      } else {
        for (int e = 0; e < 8; ++e)
          if (d + e < dim) v[e] = load(x, at + e);
      }
    }
    float4* out = (float4*)(to + row * (D + 4) + d);
    out[0] = make_float4(v[0], v[1], v[2], v[3]);
    out[1] = make_float4(v[4], v[5], v[6], v[7]);
  }
}

// s[r][c] = x[ty + 16 r] . y[tx + 16 c]
template <int R, int D>
__device__ __forceinline__ void attn_dots(const float* x, const float* y, float (&s)[R][R]) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int c = 0; c < R; ++c) s[r][c] = 0;
#pragma unroll 4
  for (int d = 0; d < D; d += 4) {
    float4 a[R], b[R];
#pragma unroll
    for (int r = 0; r < R; ++r) a[r] = *(const float4*)(x + (ty + 16 * r) * (D + 4) + d);
#pragma unroll
    for (int c = 0; c < R; ++c) b[c] = *(const float4*)(y + (tx + 16 * c) * (D + 4) + d);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int c = 0; c < R; ++c) {
        s[r][c] = fmaf(a[r].x, b[c].x, s[r][c]);
        s[r][c] = fmaf(a[r].y, b[c].y, s[r][c]);
        s[r][c] = fmaf(a[r].z, b[c].z, s[r][c]);
        s[r][c] = fmaf(a[r].w, b[c].w, s[r][c]);
      }
  }
}

// o[r][.] += sum over j of p[ty + 16 r][j] * y[j][4 tx + 64 k ..]
template <int B, int D>
__device__ __forceinline__ void attn_add(const float* p, const float* y, float (&o)[B / 16][D / 64][4]) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 4
  for (int j = 0; j < B; ++j) {
    float4 v[D / 64];
#pragma unroll
    for (int k = 0; k < D / 64; ++k) v[k] = *(const float4*)(y + j * (D + 4) + 4 * tx + 64 * k);
#pragma unroll
    for (int r = 0; r < B / 16; ++r) {
      const float w = p[(ty + 16 * r) * (B + 1) + j];
#pragma unroll
      for (int k = 0; k < D / 64; ++k) {
        o[r][k][0] = fmaf(w, v[k].x, o[r][k][0]);
        o[r][k][1] = fmaf(w, v[k].y, o[r][k][1]);
        o[r][k][2] = fmaf(w, v[k].z, o[r][k][2]);
        o[r][k][3] = fmaf(w, v[k].w, o[r][k][3]);
      }
    }
  }
}

template <int B, int D>
__device__ __forceinline__ void attn_store(const Operand& x, i64 first, i64 stride, i64 row0, i64 tokens,
                                           int dim, const float (&o)[B / 16][D / 64][4]) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int r = 0; r < B / 16; ++r) {
    const i64 row = row0 + ty + 16 * r;
    if (row >= tokens) continue;
#pragma unroll
    for (int k = 0; k < D / 64; ++k)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int d = 4 * tx + 64 * k + e;
        if (d < dim) store(x, first + row * stride + d, o[r][k][e]);
      }
  }
}

// The first key that the queries from q0 on may see, a multiple of B, and one past the last.
template <int B>
__device__ __forceinline__ i64 attn_first_key(const Attention& a, const int* start, i64 q0) {
  i64 first = a.window > 0 && q0 - a.window + 1 > 0 ? q0 - a.window + 1 : 0;
  if (start != nullptr) {
    i64 earliest = a.tokens;
    for (int i = 0; i < B && q0 + i < a.tokens; ++i)
      earliest = start[q0 + i] < earliest ? start[q0 + i] : earliest;
    first = earliest > first ? earliest : first;
  }
  return first / B * B;
}
template <int B>
__device__ __forceinline__ i64 attn_last_key(const Attention& a, i64 q0) {
  const i64 end = a.causal ? q0 + B : a.window > 0 ? q0 + B - 1 + a.window : a.tokens;
  return end < a.tokens ? end : a.tokens;
}

template <int B, int D>
__device__ __forceinline__ void attn_forward(const Attention& a) {
  extern __shared__ float attn_shared[];
  constexpr int R = B / 16;
  float *q = attn_shared, *kv = q + B * (D + 4), *p = kv + B * (D + 4);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const i64 q0 = (i64)(gridDim.x - 1 - blockIdx.x) * B, head = blockIdx.y, batch = blockIdx.z;
  const i64 group = head / (a.heads / a.kv_heads), row0 = batch * a.tokens;
  const int* start = a.doc_start != nullptr ? a.doc_start + row0 : nullptr;
  const i64 q_first = row0 * a.q_stride + head * a.head_dim, k_first = row0 * a.k_stride + group * a.head_dim,
            v_first = row0 * a.v_stride + group * a.head_dim;
  attn_load<B, D>(q, a.q, q_first, a.q_stride, q0, a.tokens, a.head_dim);
  float o[R][D / 64][4] = {}, most[R], total[R];
  for (int r = 0; r < R; ++r) most[r] = __int_as_float(0xff800000), total[r] = 0;
  const i64 last = attn_last_key<B>(a, q0);
  for (i64 k0 = attn_first_key<B>(a, start, q0); k0 < last; k0 += B) {
    __syncthreads();
    attn_load<B, D>(kv, a.k, k_first, a.k_stride, k0, a.tokens, a.head_dim);
    __syncthreads();
    float s[R][R];
    attn_dots<R, D>(q, kv, s);
    __syncthreads();
    attn_load<B, D>(kv, a.v, v_first, a.v_stride, k0, a.tokens, a.head_dim);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const i64 i = q0 + ty + 16 * r;
      float highest = most[r];
#pragma unroll
      for (int c = 0; c < R; ++c) {
        s[r][c] = attn_sees(a, start, i, k0 + tx + 16 * c) ? s[r][c] * a.scale : __int_as_float(0xff800000);
        highest = fmaxf(highest, s[r][c]);
      }
      for (int offset = 8; offset > 0; offset >>= 1)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, offset));
      const bool any = highest != __int_as_float(0xff800000);
      const float factor = any ? expf(most[r] - highest) : 1.0f;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < R; ++c) {
        const float w = any ? expf(s[r][c] - highest) : 0.0f;
        sum += w;
        const i64 j = k0 + tx + 16 * c;
        p[(ty + 16 * r) * (B + 1) + tx + 16 * c] =
            a.random != nullptr && w > 0 ? w * attn_kept(a, batch, head, i, j) : w;
      }
      for (int offset = 8; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      total[r] = total[r] * factor + sum;
      most[r] = highest;
#pragma unroll
      for (int k = 0; k < D / 64; ++k)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[r][k][e] *= factor;
    }
    __syncthreads();
    attn_add<B, D>(p, kv, o);
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const i64 i = q0 + ty + 16 * r;
    if (tx == 0 && i < a.tokens) a.lse[(batch * a.heads + head) * a.tokens + i] = most[r] + logf(total[r]);
    const float inverse = total[r] > 0 ? 1.0f / total[r] : 0.0f;
#pragma unroll
    for (int k = 0; k < D / 64; ++k)
#pragma unroll
      for (int e = 0; e < 4; ++e) o[r][k][e] *= inverse;
  }
  attn_store<B, D>(a.out, row0 * a.out_stride + head * a.head_dim, a.out_stride, q0, a.tokens, a.head_dim, o);
}

// delta = dout . out, a warp for each head of a token.
extern "C" __global__ void attention_delta(AttentionDelta args) {
  begin_grid();
  const Attention& a = args.attention;
  const i64 at = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (at >= args.count) return;
  const i64 token = at / a.heads, head = at % a.heads;
  const i64 out = token * a.out_stride + head * a.head_dim, dout = token * a.dout_stride + head * a.head_dim;
  float sum = 0;
  for (int d = threadIdx.x & 31; d < a.head_dim; d += 32)
    sum += load(a.dout, dout + d) * load(a.out, out + d);
  sum = warp_sum(sum);
  if ((threadIdx.x & 31) == 0)
    a.delta[(token / a.tokens * a.heads + head) * a.tokens + token % a.tokens] = sum;
}

template <int B, int D>
__device__ __forceinline__ void attn_dq(const Attention& a) {
  extern __shared__ float attn_shared[];
  constexpr int R = B / 16;
  float *q = attn_shared, *dout = q + B * (D + 4), *k = dout + B * (D + 4), *v = k + B * (D + 4),
        *p = v + B * (D + 4);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const i64 q0 = (i64)(gridDim.x - 1 - blockIdx.x) * B, head = blockIdx.y, batch = blockIdx.z;
  const i64 group = head / (a.heads / a.kv_heads), row0 = batch * a.tokens;
  const int* start = a.doc_start != nullptr ? a.doc_start + row0 : nullptr;
  const i64 q_first = row0 * a.q_stride + head * a.head_dim, k_first = row0 * a.k_stride + group * a.head_dim,
            v_first = row0 * a.v_stride + group * a.head_dim;
  attn_load<B, D>(q, a.q, q_first, a.q_stride, q0, a.tokens, a.head_dim);
  attn_load<B, D>(dout, a.dout, row0 * a.dout_stride + head * a.head_dim, a.dout_stride, q0, a.tokens,
                  a.head_dim);
  float o[R][D / 64][4] = {}, lse[R], delta[R];
  for (int r = 0; r < R; ++r) {
    const i64 i = q0 + ty + 16 * r, at = (batch * a.heads + head) * a.tokens + i;
    lse[r] = i < a.tokens ? a.lse[at] : 0.0f;
    delta[r] = i < a.tokens ? a.delta[at] : 0.0f;
  }
  const i64 last = attn_last_key<B>(a, q0);
  for (i64 k0 = attn_first_key<B>(a, start, q0); k0 < last; k0 += B) {
    __syncthreads();
    attn_load<B, D>(k, a.k, k_first, a.k_stride, k0, a.tokens, a.head_dim);
    attn_load<B, D>(v, a.v, v_first, a.v_stride, k0, a.tokens, a.head_dim);
    __syncthreads();
    float s[R][R], dp[R][R];
    attn_dots<R, D>(q, k, s);
    attn_dots<R, D>(dout, v, dp);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int c = 0; c < R; ++c) {
        const i64 i = q0 + ty + 16 * r, j = k0 + tx + 16 * c;
        float ds = 0;
        if (attn_sees(a, start, i, j)) {
          const float w = expf(s[r][c] * a.scale - lse[r]);
          ds = w * (attn_kept(a, batch, head, i, j) * dp[r][c] - delta[r]) * a.scale;
        }
        p[(ty + 16 * r) * (B + 1) + tx + 16 * c] = ds;
      }
    __syncthreads();
    attn_add<B, D>(p, k, o);
  }
  attn_store<B, D>(a.dq, row0 * a.dq_stride + head * a.head_dim, a.dq_stride, q0, a.tokens, a.head_dim, o);
}

template <int B, int D>
__device__ __forceinline__ void attn_dkv(const Attention& a) {
  extern __shared__ float attn_shared[];
  constexpr int R = B / 16;
  float *k = attn_shared, *v = k + B * (D + 4), *q = v + B * (D + 4), *dout = q + B * (D + 4);
  float *p = dout + B * (D + 4), *lse = p + B * (B + 1), *delta = lse + B;  // p: weights, then slopes
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const i64 k0 = (i64)blockIdx.x * B, group = blockIdx.y, batch = blockIdx.z, row0 = batch * a.tokens;
  const int* start = a.doc_start != nullptr ? a.doc_start + row0 : nullptr;
  const i64 k_first = row0 * a.k_stride + group * a.head_dim,
            v_first = row0 * a.v_stride + group * a.head_dim;
  attn_load<B, D>(k, a.k, k_first, a.k_stride, k0, a.tokens, a.head_dim);
  attn_load<B, D>(v, a.v, v_first, a.v_stride, k0, a.tokens, a.head_dim);
  float dk[R][D / 64][4] = {}, dv[R][D / 64][4] = {};
  const int each = a.heads / a.kv_heads;
  const i64 last_key = k0 + B < a.tokens ? k0 + B - 1 : a.tokens - 1;
  const i64 end = a.window > 0 && last_key + a.window < a.tokens ? last_key + a.window : a.tokens;
  const i64 begin = a.causal ? k0 : a.window > 0 && k0 >= a.window ? (k0 - a.window + 1) / B * B : 0;
  for (int g = 0; g < each; ++g) {
    const i64 head = group * each + g;
    for (i64 q0 = begin; q0 < end; q0 += B) {
      const i64 mine = q0 + threadIdx.x;
      const bool may = start == nullptr || (threadIdx.x < B && mine < a.tokens && start[mine] <= last_key);
      if (!__syncthreads_or(may)) continue;  // also: the tiles of the last turn have been read
      attn_load<B, D>(q, a.q, row0 * a.q_stride + head * a.head_dim, a.q_stride, q0, a.tokens, a.head_dim);
      attn_load<B, D>(dout, a.dout, row0 * a.dout_stride + head * a.head_dim, a.dout_stride, q0, a.tokens,
                      a.head_dim);
      if (threadIdx.x < B) {
        const i64 at = (batch * a.heads + head) * a.tokens + mine;
        lse[threadIdx.x] = mine < a.tokens ? a.lse[at] : 0.0f;
        delta[threadIdx.x] = mine < a.tokens ? a.delta[at] : 0.0f;
      }
      __syncthreads();
      float s[R][R], dp[R][R];
      attn_dots<R, D>(k, q, s);
      attn_dots<R, D>(v, dout, dp);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < R; ++c) {
          const int column = tx + 16 * c;
          const i64 i = q0 + column, j = k0 + ty + 16 * r;
          float weight = 0, slope = 0;
          if (attn_sees(a, start, i, j)) {
            const float w = expf(s[r][c] * a.scale - lse[column]), kept = attn_kept(a, batch, head, i, j);
            weight = w * kept;
            slope = w * (kept * dp[r][c] - delta[column]) * a.scale;
          }
          p[(ty + 16 * r) * (B + 1) + column] = weight;
          s[r][c] = slope;
        }
      __syncthreads();
      attn_add<B, D>(p, dout, dv);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < R; ++c) p[(ty + 16 * r) * (B + 1) + tx + 16 * c] = s[r][c];
      __syncthreads();
      attn_add<B, D>(p, q, dk);
    }
  }
  const i64 first = row0 * a.dkv_stride + group * a.head_dim;
  attn_store<B, D>(a.dk, first, a.dkv_stride, k0, a.tokens, a.head_dim, dk);
  attn_store<B, D>(a.dv, first, a.dkv_stride, k0, a.tokens, a.head_dim, dv);
}

// A block of Turing has 64 KiB of shared memory: smaller tiles, and no heads of more than 128 elements.
#if __CUDA_ARCH__ < 800
enum { kForward128 = 32, kBackward64 = 32, kBackward128 = 16 };
#else
enum { kForward128 = 64, kBackward64 = 64, kBackward128 = 32 };
#endif
extern "C" __global__ void __launch_bounds__(256) attention_64(Attention a) {
  begin_grid();
  attn_forward<64, 64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_128(Attention a) {
  begin_grid();
  attn_forward<kForward128, 128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_256(Attention a) {
  begin_grid();
  attn_forward<32, 256>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dq_64(Attention a) {
  begin_grid();
  attn_dq<kBackward64, 64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dq_128(Attention a) {
  begin_grid();
  attn_dq<kBackward128, 128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dq_256(Attention a) {
  begin_grid();
  attn_dq<16, 256>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dkv_64(Attention a) {
  begin_grid();
  attn_dkv<kBackward64, 64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dkv_128(Attention a) {
  begin_grid();
  attn_dkv<kBackward128, 128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_dkv_256(Attention a) {
  begin_grid();
  attn_dkv<16, 256>(a);
}

}  // namespace plimsoll::cuda
