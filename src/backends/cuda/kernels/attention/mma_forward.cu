// Attention forward on matrix units, with an online softmax (Dao 2023, arXiv:2307.08691): a block takes a
// tile of queries of a head, four warps 16 kM rows each, and goes over the tiles of keys that they see.
// Scores and weights stay in registers. Keys and values lie in one buffer each: values arrive during the
// product with the keys, the next keys during the softmax and the product with the values.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/attention/mma_args.h"
#include "backends/cuda/kernels/attention/mma_forms.cuh"
#include "backends/cuda/kernels/attention/mma_masks.cuh"
#include "backends/cuda/kernels/attention/mma_products.cuh"

namespace plimsoll::cuda {

template <int kType, int kWidth, bool kDrops>
struct MmaForward {
  using Sizes = MmaSizes<kWidth, kType>;
  static constexpr int kThreads = Sizes::kThreads, kQueries = Sizes::kQueries, kM = kQueries / 64,
                       kColumns = kWidth / 8;
  static constexpr int kKeys = kDrops ? Sizes::kDrawnKeys : Sizes::kKeys, kN = kKeys / 8;

  const Attention& a;
  const i64 batch;
  const int head, lane, q0, row0;  // row0: of the warp within the tile
  const Mask mask;
  float most[kM][2], total[kM][2];  // of rows g and g + 8 of each m; of scores before they are scaled

  // Blocks: x: heads of sequences; y: tiles, those with the most keys first.
  __device__ __forceinline__ explicit MmaForward(const Attention& args)
      : a(args),
        batch(blockIdx.x / (u32)args.heads),
        head((int)(blockIdx.x % (u32)args.heads)),
        lane(threadIdx.x & 31),
        q0((int)(gridDim.y - 1 - blockIdx.y) * kQueries),
        row0((int)(threadIdx.x >> 5) * 16 * kM),
        mask(args, batch) {}

  __device__ __forceinline__ int query(int m, int half) const {
    return q0 + row0 + 16 * m + lane / 4 + 8 * half;
  }

  __device__ __forceinline__ void hide(int k0, float (&s)[kM][kN][4]) const {
    if (mask.is_full(q0 + row0, 16 * kM, k0, kKeys)) return;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = query(m, half), first = mask.first_key(i);
#pragma unroll
        for (int n = 0; n < kN; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (!mask.sees(first, i, k0 + 8 * n + 2 * (lane % 4) + e))
              s[m][n][2 * half + e] = minus_infinity();
      }
  }

  // Scores become weights, relative to the highest score so far; what was added before is scaled to it.
  __device__ __forceinline__ void soften(float (&s)[kM][kN][4], float (&o)[kM][kColumns][4]) {
    const float scale = a.scale * log2_e();
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float highest = most[m][half];
#pragma unroll
        for (int n = 0; n < kN; ++n)
          highest = fmaxf(highest, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
        const float base = highest == minus_infinity() ? 0.0f : highest * scale;
        const float factor = exp2_fast(fmaf(most[m][half], scale, -base));
        float sum = 0;
#pragma unroll
        for (int n = 0; n < kN; ++n)
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            s[m][n][e] = exp2_fast(fmaf(s[m][n][e], scale, -base));
            sum += s[m][n][e];
          }
        total[m][half] = total[m][half] * factor + sum;
        most[m][half] = highest;
#pragma unroll
        for (int n = 0; n < kColumns; ++n) o[m][n][2 * half] *= factor, o[m][n][2 * half + 1] *= factor;
      }
  }

  __device__ __forceinline__ void drop(int k0, float (&s)[kM][kN][4]) const {
    const Draws draws(a, batch, head);
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        float factors[4];
        draws.of_queries(query(m, 0), k0 + 8 * n, factors);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][n][e] *= factors[e];
      }
  }

  // Results by way of the queries' tile.
  __device__ __forceinline__ void finish(SharedAt tile, const float (&o)[kM][kColumns][4]) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      float inverse[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = total[m][half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        inverse[half] = sum > 0 ? 1.0f / sum : 0.0f;
        if (lane % 4 == 0 && query(m, half) < mask.tokens())
          a.lse[(batch * a.heads + head) * a.tokens + query(m, half)] = most[m][half] * a.scale + logf(sum);
      }
      put_rows<kType, kWidth, kColumns>(tile, row0 + 16 * m, 0, o[m], inverse[0], inverse[1]);
    }
    __syncthreads();
    store_tile<kQueries, kWidth, kThreads>(tile, rows_of<kType>(a, a.out, a.out_stride, batch, head), q0);
  }

  // Shared: q, k, v.
  __device__ __forceinline__ void run(SharedAt q) {
    const SharedAt k = q + kQueries * Sizes::kRow, v = k + kKeys * Sizes::kRow;
    const int kv = head / (a.heads / a.kv_heads);
    const auto keys = rows_of<kType>(a, a.k, a.k_stride, batch, kv),
               values = rows_of<kType>(a, a.v, a.v_stride, batch, kv);
    load_tile<kQueries, kWidth, kThreads>(q, rows_of<kType>(a, a.q, a.q_stride, batch, head), q0);
    int tile = mask.first_key(q0) / kKeys;
    const int end = mask.end_of_keys(tile, q0, kQueries, kKeys);
    async_close();
    load_tile<kKeys, kWidth, kThreads>(k, keys, tile * kKeys);
    async_close();
    async_wait<1>();
    round_tile<kType, kQueries, kWidth, kThreads>(q);
    float o[kM][kColumns][4] = {};
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) most[m][half] = minus_infinity(), total[m][half] = 0;
    for (; tile < end; ++tile) {
      async_wait<0>();
      round_tile<kType, kKeys, kWidth, kThreads>(k);
      __syncthreads();  // the keys are here, and all have read the last values
      load_tile<kKeys, kWidth, kThreads>(v, values, tile * kKeys);
      async_close();
      const bool sees_none = mask.is_hidden(q0 + row0, 16 * kM, tile * kKeys, kKeys);  // this warp
      float s[kM][kN][4];
      if (!sees_none) multiply_rows<kType, kWidth>(q, row0, k, s);
      __syncthreads();  // all have read the keys
      if (tile + 1 < end) load_tile<kKeys, kWidth, kThreads>(k, keys, (tile + 1) * kKeys);
      async_close();
      if (!sees_none) {
        hide(tile * kKeys, s);
        soften(s, o);
        if constexpr (kDrops) drop(tile * kKeys, s);
      }
      async_wait<1>();
      round_tile<kType, kKeys, kWidth, kThreads>(v);
      __syncthreads();  // the values are here
      if (!sees_none) add_weighted<kType, kWidth>(s, v, 0, o);
    }
    async_wait<0>();
    __syncthreads();
    finish(q, o);
  }
};

template <int kWidth>
__device__ __forceinline__ void mma_forward(const Attention& a) {
  extern __shared__ __align__(128) unsigned char mma_shared[];
  MMA_ATTENTION_FORM(MmaForward, kWidth, a, shared_at(mma_shared));
}

#if MMA_HAS_WIDTH(64)
extern "C" __global__ void __launch_bounds__(128) attention_mma_64(Attention a) {
  begin_grid();
  mma_forward<64>(a);
}
#endif
#if MMA_HAS_WIDTH(128)
extern "C" __global__ void __launch_bounds__(128) attention_mma_128(Attention a) {
  begin_grid();
  mma_forward<128>(a);
}
#endif
#if MMA_HAS_WIDTH(256)
extern "C" __global__ void __launch_bounds__(128) attention_mma_256(Attention a) {
  begin_grid();
  mma_forward<256>(a);
}
#endif

}  // namespace plimsoll::cuda
