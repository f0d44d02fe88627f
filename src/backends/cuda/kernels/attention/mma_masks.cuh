// Who sees whom in a sequence, tile by tile, and what dropout keeps of a fragment of weights.
#pragma once

#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/kernels/attention/attention_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float log2_e() { return 1.4426950408889634f; }

// A sequence's mask. Documents lie one behind the other, so that doc_start never falls.
struct Mask {
  const Attention& a;
  const int* start;  // this sequence's
  __device__ __forceinline__ Mask(const Attention& args, i64 batch)
      : a(args), start(args.doc_start == nullptr ? nullptr : args.doc_start + batch * args.tokens) {}
  __device__ __forceinline__ int tokens() const { return (int)a.tokens; }
  __device__ __forceinline__ int window() const { return (int)a.window; }  // below `tokens`

  // The keys that query i sees begin there.
  __device__ __forceinline__ int first_key(int i) const {
    const int by_window = window() > 0 && i >= window() ? i - window() + 1 : 0;
    const int by_document = start != nullptr ? start[i < tokens() ? i : tokens() - 1] : 0;
    return by_document > by_window ? by_document : by_window;
  }
  // How far a window on both sides goes.
  __device__ __forceinline__ int reach() const { return window() > 0 ? window() : tokens(); }
  // Whether key j is before the end of that window of query i.
  __device__ __forceinline__ bool is_before_end(int i, int j) const { return j - i < reach(); }
  // Whether query i, whose first key is given, sees key j.
  __device__ __forceinline__ bool sees(int first, int i, int j) const {
    if (j < first || j >= tokens() || i >= tokens() || (a.causal && j > i)) return false;
    return a.causal || (is_before_end(i, j) && (start == nullptr || i >= start[j]));
  }
  // Whether queries [i, i + queries) all see the keys [j, j + keys), so that nothing is to be tested.
  __device__ __forceinline__ bool is_full(int i, int queries, int j, int keys) const {
    if (i + queries > tokens() || j + keys > tokens() || (!a.causal && start != nullptr)) return false;
    const int last = j + keys - 1;
    return j >= first_key(i + queries - 1) && (a.causal ? last <= i : is_before_end(i, last));
  }
  // Whether none of the queries [i, i + queries) sees any of the keys [j, j + keys), as far as is easily
  // said.
  __device__ __forceinline__ bool is_hidden(int i, int queries, int j, int keys) const {
    const int last = i + queries - 1;
    return i >= tokens() || j >= tokens() || (a.causal ? j > last : !is_before_end(last, j)) ||
           j + keys <= first_key(i);
  }
  // The tiles of `size` keys that the queries [i, i + queries) see end there; `from` is before it. All
  // threads call it.
  __device__ __forceinline__ int end_of_keys(int from, int i, int queries, int size) const {
    const int past = i + queries < tokens() ? i + queries : tokens();
    if (a.causal) return (past + size - 1) / size;
    const int end = reach() <= tokens() - past ? past - 1 + reach() : tokens();
    return tiles_until(from, (end + size - 1) / size, size, past - 1);
  }
  // The first of the tiles [from, tiles) of `size` tokens whose document begins behind token `last`. All
  // threads call it.
  __device__ __forceinline__ int tiles_until(int from, int tiles, int size, int last) const {
    if (start == nullptr || from >= tiles) return tiles;
    for (int tile = from; tile < tiles; tile += blockDim.x) {
      const int mine = tile + (int)threadIdx.x;
      const int in = __syncthreads_count(mine < tiles && start[mine * size] <= last);
      if (in < (int)blockDim.x) return tile + in < tiles ? tile + in : tiles;
    }
    return tiles;
  }
};

// Words of a head's draws, as ops/philox.h lays them out: one philox for the four keys j / 4 of a query.
struct Draws {
  u32 key_low, key_high, step, sequence, op_key;
  u64 threshold;
  float kept;
  u32 tokens;
  Draws() = default;
  __device__ __forceinline__ Draws(const Attention& a, i64 batch, int head)
      : key_low(a.random[0]),
        key_high(a.random[1]),
        step(a.random[2]),
        sequence(a.random[3] + (u32)batch),
        op_key(a.key + (u32)head),
        threshold(a.threshold),
        kept(a.kept),
        tokens((u32)a.tokens) {}

  __device__ __forceinline__ uint4 words(int query, int key) const {
    const u64 block = (u64)(key >> 2) * tokens + (u64)query;
    return philox4<5>((u32)block, sequence + ((u32)(block >> 32) << 16), step, op_key, key_low, key_high);
  }
  __device__ __forceinline__ float factor(u32 word) const { return (u64)word >= threshold ? kept : 0.0f; }

  // For a fragment of queries in rows: queries i and i + 8 (this lane's rows), keys j .. j + 7, of which the
  // lane has 2t and 2t + 1. Two lanes share four keys: each draws for one of the rows and gives the other its
  // half.
  __device__ __forceinline__ void of_queries(int i, int j, float (&factors)[4]) const {
    const int t = threadIdx.x & 3;
    const bool odd = t & 1;
    const uint4 mine = words(odd ? i + 8 : i, j + (t >> 1) * 4);
    const u32 low = __shfl_xor_sync(0xffffffffu, odd ? mine.x : mine.z, 1);
    const u32 high = __shfl_xor_sync(0xffffffffu, odd ? mine.y : mine.w, 1);
    factors[0] = factor(odd ? low : mine.x), factors[1] = factor(odd ? high : mine.y);
    factors[2] = factor(odd ? mine.z : low), factors[3] = factor(odd ? mine.w : high);
  }
  // For a fragment of keys in rows: keys j + g and j + g + 8, queries i and i + 1 (this lane's columns). The
  // four lanes of g / 4 share four blocks of words, one for each of a lane's elements: lane e draws the e-th,
  // and takes word g % 4 of each.
  __device__ __forceinline__ void of_keys(int i, int j, float (&factors)[4]) const {
    const int g = (threadIdx.x & 31) >> 2, e = g & 3;
    const uint4 drawn = words(i + (e & 1), j + (g & 4) + (e >> 1) * 8);
    u32 w[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
    exchange_by(e, w);  // w[s]: word e ^ s, which lane e ^ s takes
#pragma unroll
    for (int s = 1; s < 4; ++s) w[s] = __shfl_xor_sync(0xffffffffu, w[s], s * 4);
    exchange_by(e, w);  // of block s
#pragma unroll
    for (int s = 0; s < 4; ++s) factors[s] = factor(w[s]);
  }

 private:
  // w[s] becomes w[s ^ e].
  static __device__ __forceinline__ void exchange_by(int e, u32 (&w)[4]) {
    const bool one = e & 1, two = e & 2;
    const u32 a = one ? w[1] : w[0], b = one ? w[0] : w[1], c = one ? w[3] : w[2], d = one ? w[2] : w[3];
    w[0] = two ? c : a, w[1] = two ? d : b, w[2] = two ? a : c, w[3] = two ? b : d;
  }
};

}  // namespace plimsoll::cuda
