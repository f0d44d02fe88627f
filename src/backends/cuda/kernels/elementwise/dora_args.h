// Arguments of dora.cu.
#pragma once

#include "backends/cuda/kernels/gemm/coded_weight_args.h"

namespace plimsoll::cuda {

constexpr int kDoraThreads = 256;
constexpr int kDoraRows = 8;  ///< of a weight [out, in], that a block takes

/// out [outs] = norms of the rows of weight + scale b a, from row `row` of the weight on, which lies in
/// codes, or as numbers where `codes` has none.
struct DoraNorm {
  Operand weight;
  CodedWeight codes;
  const float *a = nullptr, *b = nullptr;  ///< [rank, in], [outs, rank]
  float* out = nullptr;
  i64 width = 0;  ///< elements of a row of the weight
  i64 row = 0, in = 0, outs = 0, rank = 0;
  float scale = 1;
};
/// out = x * magnitude / norm over rows of cols.
struct DoraScale {
  Operand x;
  const float *magnitude = nullptr, *norm = nullptr;
  Operand out;
  i64 n = 0, cols = 0;
};
/// out = dy * x / norm
struct DoraScaleGrad {
  Operand dy, x;
  const float* norm = nullptr;
  Operand out;
  i64 n = 0, cols = 0;
};

inline constexpr DeviceKernel<DoraNorm> kDoraNormRows{"elementwise/dora", "dora_norm_rows"};
inline constexpr DeviceKernel<DoraNorm> kDoraNormColumns{"elementwise/dora", "dora_norm_columns"};
inline constexpr DeviceKernel<DoraScale> kDoraScale{"elementwise/dora", "dora_scale"};
inline constexpr DeviceKernel<DoraScaleGrad> kDoraScaleGrad{"elementwise/dora", "dora_scale_grad"};

}  // namespace plimsoll::cuda
