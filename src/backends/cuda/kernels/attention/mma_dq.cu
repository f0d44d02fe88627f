// Attention's gradient of q on matrix units, out of the scores' log-sum-exp: P = exp(S - lse), dP = dO V^T,
// dS = P (dP - delta) with delta = dO . O of each row; dQ = dS K. A block takes a tile of queries of a head,
// a warp 16 of them, and goes over the tiles of keys that they see, which have two buffers: the next tile
// arrives while this one is multiplied. delta is given on to the kernel of dk and dv (mma_dkv.cu). Each sum
// has one order, and no two blocks add to one place.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/attention/mma_args.h"
#include "backends/cuda/kernels/attention/mma_forms.cuh"
#include "backends/cuda/kernels/attention/mma_masks.cuh"
#include "backends/cuda/kernels/attention/mma_products.cuh"

namespace plimsoll::cuda {

template <int kType, int kWidth, bool kDrops>
struct MmaDq {
  using Sizes = MmaSizes<kWidth, kType>;
  static constexpr int kThreads = Sizes::kThreads, kQueries = Sizes::kOwn, kKeys = Sizes::kLoop,
                       kN = kKeys / 8, kColumns = kWidth / 8 * 2 * kQueries / kThreads;

  const Attention& a;
  const i64 batch;
  const int head, lane, q0, row0, column0;  // row0, column0: the warp's, within the tile and in eights
  const Mask mask;

  // Blocks: x: heads of sequences; y: tiles, those with the most keys first.
  __device__ __forceinline__ explicit MmaDq(const Attention& args)
      : a(args),
        batch(blockIdx.x / (u32)args.heads),
        head((int)(blockIdx.x % (u32)args.heads)),
        lane(threadIdx.x & 31),
        q0((int)(gridDim.y - 1 - blockIdx.y) * kQueries),
        row0((int)(threadIdx.x >> 5) * 16 % kQueries),
        column0((int)(threadIdx.x / (2 * kQueries)) * kColumns),
        mask(args, batch) {}

  static __device__ __forceinline__ float dot(u32 x, u32 y) {
    if constexpr (kType == kF32) {
      return __uint_as_float(x) * __uint_as_float(y);
    } else {
      float of_x[2], of_y[2];
      unpack2(x, kType, of_x), unpack2(y, kType, of_y);
      return of_x[0] * of_y[0] + of_x[1] * of_y[1];
    }
  }
  // delta of the warp's 16 rows, to shared memory, and by the first warp of a row to global memory; kLanes
  // lanes take a row.
  __device__ __forceinline__ void sum_delta(const Rows<kType>& dout, float* delta) const {
    constexpr int kChunks = Sizes::kRow / 16, kLanes = kChunks < 32 ? kChunks : 32;
    const Rows<kType> out = rows_of<kType>(a, a.out, a.out_stride, batch, head);
    for (int r = 0; r < 16; r += 32 / kLanes) {
      const int row = r + lane / kLanes, i = q0 + row0 + row;
      float sum = 0;
#pragma unroll
      for (int chunk = lane % kLanes; chunk < kChunks; chunk += kLanes) {
        const int first = chunk * out.kChunk, left = a.head_dim - first;
        if (i >= mask.tokens() || left <= 0) continue;
        const auto *x = out.data + i * out.stride + first, *y = dout.data + i * dout.stride + first;
        const uint4 of_x = out.whole ? *(const uint4*)x : load_part(x, left);
        const uint4 of_y = dout.whole ? *(const uint4*)y : load_part(y, left);
        sum += dot(of_x.x, of_y.x) + dot(of_x.y, of_y.y) + dot(of_x.z, of_y.z) + dot(of_x.w, of_y.w);
      }
      for (int offset = kLanes / 2; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
      if (lane % kLanes != 0) continue;
      delta[row] = sum;
      if (column0 == 0 && i < mask.tokens()) a.delta[(batch * a.heads + head) * a.tokens + i] = sum;
    }
    __syncwarp();
  }

  // Scores become slopes: P (kept dP - delta).
  __device__ __forceinline__ void slopes(int k0, const float (&lse)[2], const float (&delta)[2],
                                         const float (&dp)[1][kN][4], float (&s)[1][kN][4]) const {
    const bool full = mask.is_full(q0 + row0, 16, k0, kKeys);
    const float scale = a.scale * log2_e();
    const int i = q0 + row0 + lane / 4;
    const int first[2] = {full ? 0 : mask.first_key(i), full ? 0 : mask.first_key(i + 8)};
    const Draws draws = kDrops ? Draws(a, batch, head) : Draws{};
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      float kept[4] = {1, 1, 1, 1};
      if constexpr (kDrops) draws.of_queries(i, k0 + 8 * n, kept);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int half = e / 2, j = k0 + 8 * n + 2 * (lane % 4) + e % 2;
        const float w = exp2_fast(fmaf(s[0][n][e], scale, -lse[half]));
        const float slope = w * ((kDrops ? kept[e] * dp[0][n][e] : dp[0][n][e]) - delta[half]);
        s[0][n][e] = full || mask.sees(first[half], i + 8 * half, j) ? slope : 0.0f;
      }
    }
  }

  // Shared: q, dout, two buffers of k and of v, delta.
  __device__ __forceinline__ void run(unsigned char* shared) {
    const SharedAt q = shared_at(shared), dout = q + Sizes::kOwnBytes, k = dout + Sizes::kOwnBytes,
                   v = k + 2 * Sizes::kLoopBytes;
    float* delta_of_rows = (float*)(shared + Sizes::kTileBytes) + (threadIdx.x >> 5) * 16;  // the warp's
    const int kv = head / (a.heads / a.kv_heads);
    const auto keys = rows_of<kType>(a, a.k, a.k_stride, batch, kv),
               values = rows_of<kType>(a, a.v, a.v_stride, batch, kv),
               dout_rows = rows_of<kType>(a, a.dout, a.dout_stride, batch, head);
    load_tile<kQueries, kWidth, kThreads>(q, rows_of<kType>(a, a.q, a.q_stride, batch, head), q0);
    load_tile<kQueries, kWidth, kThreads>(dout, dout_rows, q0);
    async_close();
    const int begin = mask.first_key(q0) / kKeys, end = mask.end_of_keys(begin, q0, kQueries, kKeys);
    load_tile<kKeys, kWidth, kThreads>(k, keys, begin * kKeys);
    load_tile<kKeys, kWidth, kThreads>(v, values, begin * kKeys);
    async_close();
    sum_delta(dout_rows, delta_of_rows);
    float lse[2], delta[2], o[1][kColumns][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half, i = q0 + row0 + row;
      lse[half] = i < mask.tokens() ? a.lse[(batch * a.heads + head) * a.tokens + i] * log2_e() : 0.0f;
      delta[half] = delta_of_rows[row];
    }
    async_wait<1>();
    round_tile<kType, kQueries, kWidth, kThreads>(q);
    round_tile<kType, kQueries, kWidth, kThreads>(dout);
    for (int tile = begin; tile < end; ++tile) {
      const int now = ((tile - begin) & 1) * Sizes::kLoopBytes, next = Sizes::kLoopBytes - now;
      if (tile + 1 < end) {
        load_tile<kKeys, kWidth, kThreads>(k + next, keys, (tile + 1) * kKeys);
        load_tile<kKeys, kWidth, kThreads>(v + next, values, (tile + 1) * kKeys);
      }
      async_close();
      async_wait<1>();
      round_tile<kType, kKeys, kWidth, kThreads>(k + now);
      round_tile<kType, kKeys, kWidth, kThreads>(v + now);
      __syncthreads();
      if (!mask.is_hidden(q0 + row0, 16, tile * kKeys, kKeys)) {  // from this warp
        float s[1][kN][4], dp[1][kN][4];
        multiply_rows<kType, kWidth>(q, row0, k + now, s);
        multiply_rows<kType, kWidth>(dout, row0, v + now, dp);
        slopes(tile * kKeys, lse, delta, dp, s);
        add_weighted<kType, kWidth>(s, k + now, column0, o);
      }
      __syncthreads();  // all have read the tiles
    }
    async_wait<0>();
    __syncthreads();
    put_rows<kType, kWidth, kColumns>(q, row0, column0, o[0], a.scale, a.scale);
    __syncthreads();
    store_tile<kQueries, kWidth, kThreads>(q, rows_of<kType>(a, a.dq, a.dq_stride, batch, head), q0);
  }
};

template <int kWidth>
__device__ __forceinline__ void mma_dq(const Attention& a) {
  extern __shared__ __align__(128) unsigned char mma_shared[];
  MMA_ATTENTION_FORM(MmaDq, kWidth, a, mma_shared);
}

#if MMA_HAS_WIDTH(64)
extern "C" __global__ void __launch_bounds__(128) attention_mma_dq_64(Attention a) {
  begin_grid();
  mma_dq<64>(a);
}
#endif
#if MMA_HAS_WIDTH(128)
extern "C" __global__ void __launch_bounds__(128) attention_mma_dq_128(Attention a) {
  begin_grid();
  mma_dq<128>(a);
}
#endif
#if MMA_HAS_WIDTH(256)
extern "C" __global__ void __launch_bounds__(128) attention_mma_dq_256(Attention a) {
  begin_grid();
  mma_dq<256>(a);
}
#endif

}  // namespace plimsoll::cuda
