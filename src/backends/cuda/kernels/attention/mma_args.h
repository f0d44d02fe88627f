// Kernels of attention on matrix units, and their extents. They take Attention: operands of one dtype, a
// positive scale.
#pragma once

#include "backends/cuda/kernels/attention/attention_args.h"

namespace plimsoll::cuda {

/// Of heads filled up to kWidth columns, of elements of kType: kBf16, kF16, or kF32 for products in TF32. A
/// block of each kernel stays within 99 KiB of shared memory, what it has on cards of compute capability 8.6,
/// 8.9 and 12.0.
template <int kWidth, int kType>
struct MmaSizes {
  static constexpr bool kIsTf32 = kType == kF32;
  static constexpr int kRow = kWidth * (kIsTf32 ? 4 : 2);  ///< bytes of a row of a tile
  /// Forward: a block's queries, and the keys that it takes at once; fewer of them where weights are dropped,
  /// since draws need registers.
  static constexpr int kQueries = kWidth > 128 ? 64 : 128, kKeys = kIsTf32 ? 4096 / kWidth : 64;
  static constexpr int kDrawnKeys = kKeys > 16 ? kKeys / 2 : 16;
  /// Backward: a block's queries (or keys), and the keys (or queries) that it takes at once, in two buffers.
  static constexpr int kOwn = kRow > 512 ? 32 : 64, kLoop = 8192 / kRow;
  static constexpr int kThreads = 128, kKeyThreads = kRow == 512 && !kIsTf32 ? 256 : 128;  ///< dk and dv

  static constexpr int kForwardBytes = (kQueries + 2 * kKeys) * kRow;
  static constexpr int kOwnBytes = kOwn * kRow, kLoopBytes = kLoop * kRow;
  static constexpr int kTileBytes = 2 * kOwnBytes + 4 * kLoopBytes;
  static constexpr int kQueryBytes = kTileBytes + 2 * kThreads;  ///< delta of 16 rows of each warp
  static constexpr int kKeyBytes = kTileBytes + 16 * kLoop;      ///< lse and delta, in two buffers

  static_assert(kForwardBytes <= 99 << 10 && kQueryBytes <= 99 << 10 && kKeyBytes <= 99 << 10);
};

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
