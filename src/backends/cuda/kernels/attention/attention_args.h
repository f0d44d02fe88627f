// Arguments of attention.cu, and of attention on matrix units (mma_args.h).
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

struct Attention {
  Operand q, k, v, out, dout, dq, dk, dv;
  // Elements from a token to the next; dk and dv have one.
  i64 q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0, dout_stride = 0, dq_stride = 0,
      dkv_stride = 0;
  float *lse = nullptr, *delta = nullptr;  // [B, H, T]
  const int* doc_start = nullptr;
  const u32* random = nullptr;  // null: nothing is dropped
  i64 tokens = 0, window = 0;
  u64 threshold = 0;
  float scale = 1, kept = 1;  // kept: 1 / (1 - p)
  int heads = 0, kv_heads = 0, head_dim = 0, causal = 0;
  u32 key = 0;
  int parts = 1;             // of a group's heads, each of which gives dk and dv of its own: mma_dkv.cu
  int tf32 = 0;              // f32 operands may be rounded to that; of the host alone
  float* partial = nullptr;  // f32[parts, 2, B, T, KV, D]: dk and dv of the parts; null where there is one
};
/// Of `count` heads of tokens.
struct AttentionDelta {
  Attention attention;
  i64 count = 0;
};

inline constexpr DeviceKernel<Attention> kAttention64{"attention/attention", "attention_64"};
inline constexpr DeviceKernel<Attention> kAttention128{"attention/attention", "attention_128"};
inline constexpr DeviceKernel<Attention> kAttention256{"attention/attention", "attention_256"};
inline constexpr DeviceKernel<Attention> kAttentionDq64{"attention/attention", "attention_dq_64"};
inline constexpr DeviceKernel<Attention> kAttentionDq128{"attention/attention", "attention_dq_128"};
inline constexpr DeviceKernel<Attention> kAttentionDq256{"attention/attention", "attention_dq_256"};
inline constexpr DeviceKernel<Attention> kAttentionDkv64{"attention/attention", "attention_dkv_64"};
inline constexpr DeviceKernel<Attention> kAttentionDkv128{"attention/attention", "attention_dkv_128"};
inline constexpr DeviceKernel<Attention> kAttentionDkv256{"attention/attention", "attention_dkv_256"};
inline constexpr DeviceKernel<AttentionDelta> kAttentionDelta{"attention/attention", "attention_delta"};

}  // namespace plimsoll::cuda
