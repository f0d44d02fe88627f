// Arguments of qk_norm.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kMostNormedHead = 512;

/// Norms of heads of queries and keys, then the rotation.
struct HeadNorm {
  Operand dy, x, q_weight, k_weight, out;  // dy of the gradient
  const float* table = nullptr;
  float *q_rstd = nullptr, *k_rstd = nullptr;
  i64 tokens = 0, stride = 0, dy_stride = 0, table_rows = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  float eps = 0;
};
/// partial [granules, head_dim]: rows are the heads of q, or of k, over the tokens of a sequence.
struct HeadNormWeight {
  HeadNorm norm;
  int keys = 0;
  DeviceGranules granules;
  float* partial = nullptr;
};

inline constexpr DeviceKernel<HeadNorm> kQkNormRopeHeads{"attention/qk_norm", "qk_norm_rope_heads"};
inline constexpr DeviceKernel<HeadNorm> kQkNormRopeHeadsGrad{"attention/qk_norm", "qk_norm_rope_heads_grad"};
inline constexpr DeviceKernel<HeadNormWeight> kQkNormRopeWeight{"attention/qk_norm", "qk_norm_rope_weight"};

}  // namespace plimsoll::cuda
