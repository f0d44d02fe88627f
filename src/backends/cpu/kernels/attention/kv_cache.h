// Attention of one token a sequence over its cache.
#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/kernels/attention/attention.h"

namespace plimsoll::cpu {

/// Positions whose scores one task holds: a task's keys and values are tens of KiB, and the chunks of long
/// contexts occupy all threads where heads are few.
inline constexpr int64_t kDecodeChunk = 128;

/// Bytes of scratch: each query head's maximum, sum and output, for every chunk of the cache.
int64_t attention_decode_workspace_bytes(const AttentionShape& shape, int64_t cached_keys);

/// As attention_forward with `cached_keys` and `start`, causal, for shape.tokens == 1. Softmax goes chunk by
/// chunk; chunks are merged in order. Reads each key and value once per group of query heads.
/// Determinism: the same bits for any number of threads, batch and size of the cache.
void attention_decode(const AttentionArgs& args, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
