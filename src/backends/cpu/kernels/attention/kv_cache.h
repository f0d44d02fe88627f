// Attention of one token a sequence over its cache.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/kernels/attention/attention.h"
#include "ir/dtype.h"

namespace plimsoll::cpu {

/// Positions whose scores one task holds: a task's keys and values are tens of KiB, and the chunks of long
/// contexts occupy all threads where heads are few.
inline constexpr int64_t kDecodeChunk = 128;

/// Keys and values as they are kept: f32, bf16 or f16, widened as they are read.
struct StoredCache {
  const std::byte *k = nullptr, *v = nullptr;
  ir::DType dtype = ir::DType::kF32;
};

/// Bytes of scratch: each query head's maximum, sum and output, for every chunk of the cache.
int64_t attention_decode_workspace_bytes(const AttentionShape& shape, int64_t cached_keys);

/// As attention_forward with `cached_keys` and `start`, causal, for shape.tokens == 1, with the keys and
/// values of `cache` instead of args.k and args.v. Softmax goes chunk by chunk; chunks are merged in order.
/// Reads each key and value once per group of query heads. Determinism: the same bits for any number of
/// threads, batch and size of the cache.
void attention_decode(const AttentionArgs& args, const StoredCache& cache, ThreadPool& pool,
                      std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
