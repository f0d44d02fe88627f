// Arguments of kv_cache.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kMostCachedHead = 256;
constexpr int kCachedThreads = 256;
/// Positions that are joined before others.
constexpr int kCachedStretch = 256;

/// x [B, T, cols] into rows start[b] + t of cache [B, S, cols].
struct CacheUpdate {
  Operand cache, x;
  const int* start = nullptr;
  i64 tokens = 0, size = 0, cols = 0;
};
struct CachedAttention {
  Operand q, k, v, out;
  const int* start = nullptr;
  // f32[heads of tokens, stretches, 2 + head_dim]: largest score, sum of weights, values; null: a block joins
  // them
  float* parts = nullptr;
  i64 tokens = 0, size = 0, window = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  int stretches = 1;  // of the cache
  float scale = 1;
  int padding = 0;
};

inline constexpr DeviceKernel<CacheUpdate> kCacheUpdate{"attention/kv_cache", "cache_update"};
// By the elements that a head has at most, and the heads of queries that share a block.
inline constexpr DeviceKernel<CachedAttention> kAttentionCached128x1{"attention/kv_cache",
                                                                     "attention_cached_128_1"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCached128x4{"attention/kv_cache",
                                                                     "attention_cached_128_4"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCached128x8{"attention/kv_cache",
                                                                     "attention_cached_128_8"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCached256x1{"attention/kv_cache",
                                                                     "attention_cached_256_1"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCached256x4{"attention/kv_cache",
                                                                     "attention_cached_256_4"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCachedJoin{"attention/kv_cache",
                                                                    "attention_cached_join"};

}  // namespace plimsoll::cuda
