// Reads values of a quantized weight, as numerics/quantized.h defines them.
#pragma once

#include "backends/cuda/kernels/gemm/coded_weight_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ float code_value(const CodedWeight& w, i64 i, float scale) {
  if (w.form == Codes::kInt8Rows)
    return __fmul_rn(__fmul_rn((float)(signed char)w.codes[i], scale), 1.0f / 127);
  const int pair = w.codes[i >> 1];
  return __fmul_rn(w.values[i & 1 ? pair & 15 : pair >> 4], scale);
}
__device__ __forceinline__ float scale_of(const CodedWeight& w, i64 i) {
  return w.scales[w.form == Codes::kInt8Rows ? i / w.row : i / kScaledCodes];
}
__device__ __forceinline__ float coded_value(const CodedWeight& w, i64 i) {
  return code_value(w, i, scale_of(w, i));
}

// Eight elements from i on, a multiple of 8, of one row of a multiple of 8 elements.
__device__ __forceinline__ void coded_values8(const CodedWeight& w, i64 i, const float* values, float* v) {
  const float scale = scale_of(w, i);
  if (w.form == Codes::kInt8Rows) {
    const u64 all = *(const u64*)(w.codes + i);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      v[e] = __fmul_rn(__fmul_rn((float)(signed char)(all >> 8 * e & 255u), scale), 1.0f / 127);
    return;
  }
  const u32 pairs = *(const u32*)(w.codes + (i >> 1));
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int pair = (int)(pairs >> 8 * (e / 2) & 255u);
    v[e] = __fmul_rn(values[e & 1 ? pair & 15 : pair >> 4], scale);
  }
}

}  // namespace plimsoll::cuda
