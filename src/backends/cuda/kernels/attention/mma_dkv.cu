// Attention's gradients of k and v on matrix units: dK = dS^T Q, dV = P^T dO (mma_dq.cu has the rest). A
// block takes a tile of keys of a group, four rows of warps 16 keys each, and goes over the heads of its part
// of the group, and the queries that see the keys. Scores are computed transposed, so that weights and slopes
// are operands of the next products where they lie. Of 256 columns a warp adds up half: two warps have the
// same scores.
//
// A group is one part where there are blocks enough. Else its heads are dealt into parts, each with f32 sums
// of its own, which parts.cu adds in order.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/attention/mma_args.h"
#include "backends/cuda/kernels/attention/mma_forms.cuh"
#include "backends/cuda/kernels/attention/mma_masks.cuh"
#include "backends/cuda/kernels/attention/mma_products.cuh"

namespace plimsoll::cuda {

template <int kType, int kWidth, bool kDrops>
struct MmaDkv {
  using Sizes = MmaSizes<kWidth, kType>;
  static constexpr int kThreads = Sizes::kKeyThreads, kKeys = Sizes::kOwn, kQueries = Sizes::kLoop,
                       kN = kQueries / 8, kColumns = kWidth / 8 * 2 * kKeys / kThreads;

  const Attention& a;
  const i64 batch;
  const int kv, part, lane, k0, row0, column0;  // row0, column0: the warp's, within the tile and in eights
  const Mask mask;

  // Blocks: x: parts of groups of sequences; y: tiles, of which the first have the most queries.
  __device__ __forceinline__ explicit MmaDkv(const Attention& args)
      : a(args),
        batch(blockIdx.x / (u32)(args.kv_heads * args.parts)),
        kv((int)(blockIdx.x / (u32)args.parts % (u32)args.kv_heads)),
        part((int)(blockIdx.x % (u32)args.parts)),
        lane(threadIdx.x & 31),
        k0((int)blockIdx.y * kKeys),
        row0((int)(threadIdx.x >> 5) * 16 % kKeys),
        column0((int)(threadIdx.x / (2 * kKeys)) * kColumns),
        mask(args, batch) {}

  // A tile of queries of a head into a buffer, with the statistics of its rows.
  __device__ __forceinline__ void load_queries(SharedAt q, SharedAt dout, SharedAt statistics, int head,
                                               int q0) const {
    load_tile<kQueries, kWidth, kThreads>(q, rows_of<kType>(a, a.q, a.q_stride, batch, head), q0);
    load_tile<kQueries, kWidth, kThreads>(dout, rows_of<kType>(a, a.dout, a.dout_stride, batch, head), q0);
    if (threadIdx.x >= 2 * kQueries) return;
    const int row = q0 + (int)threadIdx.x % kQueries;
    const float* from = threadIdx.x < kQueries ? a.lse : a.delta;
    const bool is_given = row < mask.tokens();
    async_copy4(statistics + 4 * (int)threadIdx.x,
                from + (batch * a.heads + head) * a.tokens + (is_given ? row : 0), is_given);
  }

  // Scores become weights, as they multiply dout, and dp becomes slopes.
  __device__ __forceinline__ void weights(int head, int q0, const float* statistics, float (&s)[1][kN][4],
                                          float (&dp)[1][kN][4]) const {
    const bool full = mask.is_full(q0, kQueries, k0 + row0, 16);
    const float scale = a.scale * log2_e();
    const int j = k0 + row0 + lane / 4;
    const Draws draws = kDrops ? Draws(a, batch, head) : Draws{};
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const int column = 8 * n + 2 * (lane % 4);
      float kept[4] = {1, 1, 1, 1};
      if constexpr (kDrops) draws.of_keys(q0 + column, k0 + row0, kept);
      float lse[2], delta[2];
      int first[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        lse[e] = statistics[column + e] * log2_e();
        delta[e] = statistics[kQueries + column + e];
        first[e] = full ? 0 : mask.first_key(q0 + column + e);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool seen = full || mask.sees(first[e % 2], q0 + column + e % 2, j + e / 2 * 8);
        const float w = seen ? exp2_fast(fmaf(s[0][n][e], scale, -lse[e % 2])) : 0.0f;
        s[0][n][e] = kDrops ? w * kept[e] : w;
        dp[0][n][e] = w * ((kDrops ? kept[e] * dp[0][n][e] : dp[0][n][e]) - delta[e % 2]);
      }
    }
  }

  // A part's sums, in f32.
  __device__ __forceinline__ void store_part_of_sum(int of_v, const float (&o)[kColumns][4],
                                                    float scale) const {
    const i64 cols = (i64)a.kv_heads * a.head_dim, rows = gridDim.x / (u32)(a.kv_heads * a.parts) * a.tokens;
    float* to = a.partial + ((2 * part + of_v) * rows + batch * a.tokens) * cols + (i64)kv * a.head_dim;
#pragma unroll
    for (int n = 0; n < kColumns; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int j = k0 + row0 + lane / 4 + e / 2 * 8, d = 8 * column0 + column_of<kType>(n, e);
        if (j < mask.tokens() && d < a.head_dim) to[j * cols + d] = o[n][e] * scale;
      }
  }

  __device__ __forceinline__ void finish(SharedAt k, SharedAt v, const float (&dk)[kColumns][4],
                                         const float (&dv)[kColumns][4]) const {
    if (a.parts > 1) {
      store_part_of_sum(0, dk, a.scale);
      store_part_of_sum(1, dv, 1.0f);
      return;
    }
    put_rows<kType, kWidth, kColumns>(k, row0, column0, dk, a.scale, a.scale);
    put_rows<kType, kWidth, kColumns>(v, row0, column0, dv, 1.0f, 1.0f);
    __syncthreads();
    store_tile<kKeys, kWidth, kThreads>(k, rows_of<kType>(a, a.dk, a.dkv_stride, batch, kv), k0);
    store_tile<kKeys, kWidth, kThreads>(v, rows_of<kType>(a, a.dv, a.dkv_stride, batch, kv), k0);
  }

  // The tiles of queries that see a key of the block's, from `begin` on.
  __device__ __forceinline__ int first_tile() const {
    return (a.causal ? k0 : mask.first_key(k0)) / kQueries;  // a window has two sides alike
  }
  __device__ __forceinline__ int end_tile(int begin) const {
    const int last = k0 + kKeys < mask.tokens() ? k0 + kKeys - 1 : mask.tokens() - 1;
    const int past =
        mask.window() > 0 && mask.window() < mask.tokens() - last ? last + mask.window() : mask.tokens();
    return mask.tiles_until(begin, (past + kQueries - 1) / kQueries, kQueries, last);
  }

  // Shared: k, v, two buffers of q, of dout and of their rows' statistics.
  __device__ __forceinline__ void run(unsigned char* shared) {
    const SharedAt k = shared_at(shared), v = k + Sizes::kOwnBytes, q = v + Sizes::kOwnBytes,
                   dout = q + 2 * Sizes::kLoopBytes;
    float* const statistics = (float*)(shared + Sizes::kTileBytes);
    load_tile<kKeys, kWidth, kThreads>(k, rows_of<kType>(a, a.k, a.k_stride, batch, kv), k0);
    load_tile<kKeys, kWidth, kThreads>(v, rows_of<kType>(a, a.v, a.v_stride, batch, kv), k0);
    async_close();
    const int begin = first_tile(), end = end_tile(begin), each = a.heads / a.kv_heads;
    int head = kv * each + part * each / a.parts, tile = begin, buffer = 0;
    const int past_head = kv * each + (part + 1) * each / a.parts;
    const auto load = [&](int of_head, int of_tile, int to) {
      load_queries(q + to * Sizes::kLoopBytes, dout + to * Sizes::kLoopBytes,
                   shared_at(statistics + to * 2 * kQueries), of_head, of_tile * kQueries);
    };
    float dk[1][kColumns][4] = {}, dv[1][kColumns][4] = {};
    load(head, tile, 0);
    async_close();
    async_wait<1>();
    round_tile<kType, kKeys, kWidth, kThreads>(k);
    round_tile<kType, kKeys, kWidth, kThreads>(v);
    while (head < past_head && begin < end) {  // else nobody sees the keys
      const bool is_last = tile + 1 == end;
      const int next_head = is_last ? head + 1 : head, next_tile = is_last ? begin : tile + 1;
      if (next_head < past_head) load(next_head, next_tile, buffer ^ 1);
      async_close();
      async_wait<1>();
      const SharedAt q_now = q + buffer * Sizes::kLoopBytes, dout_now = dout + buffer * Sizes::kLoopBytes;
      round_tile<kType, kQueries, kWidth, kThreads>(q_now);
      round_tile<kType, kQueries, kWidth, kThreads>(dout_now);
      __syncthreads();
      if (!mask.is_hidden(tile * kQueries, kQueries, k0 + row0, 16)) {  // this warp's keys
        float s[1][kN][4], dp[1][kN][4];
        multiply_rows<kType, kWidth>(k, row0, q_now, s);
        multiply_rows<kType, kWidth>(v, row0, dout_now, dp);
        weights(head, tile * kQueries, statistics + buffer * 2 * kQueries, s, dp);
        add_weighted<kType, kWidth>(s, dout_now, column0, dv);
        add_weighted<kType, kWidth>(dp, q_now, column0, dk);
      }
      __syncthreads();  // all have read the tiles
      head = next_head, tile = next_tile, buffer ^= 1;
    }
    async_wait<0>();
    __syncthreads();
    finish(k, v, dk[0], dv[0]);
  }
};

template <int kWidth>
__device__ __forceinline__ void mma_dkv(const Attention& a) {
  extern __shared__ __align__(128) unsigned char mma_shared[];
  MMA_ATTENTION_FORM(MmaDkv, kWidth, a, mma_shared);
}

#if MMA_HAS_WIDTH(64)
extern "C" __global__ void __launch_bounds__(128) attention_mma_dkv_64(Attention a) {
  begin_grid();
  mma_dkv<64>(a);
}
#endif
#if MMA_HAS_WIDTH(128)
extern "C" __global__ void __launch_bounds__(128) attention_mma_dkv_128(Attention a) {
  begin_grid();
  mma_dkv<128>(a);
}
#endif
#if MMA_HAS_WIDTH(256)
extern "C" __global__ void __launch_bounds__(256) attention_mma_dkv_256(Attention a) {
  begin_grid();
  mma_dkv<256>(a);
}
#endif

}  // namespace plimsoll::cuda
