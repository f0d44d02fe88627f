// Kernels of attention on matrix units, and their extents. They take Attention: operands of one 16-bit dtype,
// a positive scale.
#pragma once

#include "backends/cuda/kernels/attention/attention_args.h"

namespace plimsoll::cuda {

/// Of heads filled up to kWidth columns. A block of each kernel stays within 99 KiB of shared memory, what it
/// has on cards of compute capability 8.6, 8.9 and 12.0.
template <int kWidth>
struct MmaSizes {
  /// Forward: a block's queries, and the keys that it takes at once.
  static constexpr int kQueries = kWidth > 128 ? 64 : 128, kKeys = 64;
  /// Backward: a block's queries (or keys), and the keys (or queries) that it takes at once, in two buffers.
  static constexpr int kOwn = 64, kLoop = 4096 / kWidth;
  static constexpr int kThreads = 128, kKeyThreads = kWidth > 128 ? 256 : 128;  ///< the latter of dk and dv

  static constexpr int kForwardBytes = (kQueries + 2 * kKeys) * kWidth * 2;
  static constexpr int kOwnBytes = kOwn * kWidth * 2, kLoopBytes = kLoop * kWidth * 2;
  static constexpr int kTileBytes = 2 * kOwnBytes + 4 * kLoopBytes;
  static constexpr int kQueryBytes = kTileBytes + 4 * kOwn;  ///< delta of the rows
  static constexpr int kKeyBytes = kTileBytes + 16 * kLoop;  ///< lse and delta, in two buffers
};
static_assert(MmaSizes<64>::kForwardBytes <= 99 << 10 && MmaSizes<64>::kKeyBytes <= 99 << 10);
static_assert(MmaSizes<128>::kForwardBytes <= 99 << 10 && MmaSizes<128>::kKeyBytes <= 99 << 10);
static_assert(MmaSizes<256>::kForwardBytes <= 99 << 10 && MmaSizes<256>::kKeyBytes <= 99 << 10);

inline constexpr DeviceKernel<Attention> kMmaForward64{"attention/mma_forward", "attention_mma_64"};
inline constexpr DeviceKernel<Attention> kMmaForward128{"attention/mma_forward", "attention_mma_128"};
inline constexpr DeviceKernel<Attention> kMmaForward256{"attention/mma_forward", "attention_mma_256"};
inline constexpr DeviceKernel<Attention> kMmaDq64{"attention/mma_dq", "attention_mma_dq_64"};
inline constexpr DeviceKernel<Attention> kMmaDq128{"attention/mma_dq", "attention_mma_dq_128"};
inline constexpr DeviceKernel<Attention> kMmaDq256{"attention/mma_dq", "attention_mma_dq_256"};
inline constexpr DeviceKernel<Attention> kMmaDkv64{"attention/mma_dkv", "attention_mma_dkv_64"};
inline constexpr DeviceKernel<Attention> kMmaDkv128{"attention/mma_dkv", "attention_mma_dkv_128"};
inline constexpr DeviceKernel<Attention> kMmaDkv256{"attention/mma_dkv", "attention_mma_dkv_256"};

/// Sums of dk and of dv, of parts of groups: f32[parts, 2, rows, cols], added part by part into rows of
/// `stride`.
struct AttentionParts {
  const float* partial = nullptr;
  Operand dk, dv;
  i64 rows = 0, cols = 0, stride = 0;
  int parts = 0, padding = 0;
};
inline constexpr DeviceKernel<AttentionParts> kAttentionParts{"attention/parts", "attention_parts"};

}  // namespace plimsoll::cuda
