// Arguments of kv_cache.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kMostCachedHead = 256;

/// x [B, T, cols] into rows start[b] + t of cache [B, S, cols].
struct CacheUpdate {
  Operand cache, x;
  const int* start = nullptr;
  i64 tokens = 0, size = 0, cols = 0;
};
struct CachedAttention {
  Operand q, k, v, out;
  const int* start = nullptr;
  i64 tokens = 0, size = 0, window = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
};

inline constexpr DeviceKernel<CacheUpdate> kCacheUpdate{"attention/kv_cache", "cache_update"};
inline constexpr DeviceKernel<CachedAttention> kAttentionCached{"attention/kv_cache", "attention_cached"};

}  // namespace plimsoll::cuda
