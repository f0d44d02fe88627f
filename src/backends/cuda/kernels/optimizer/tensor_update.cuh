// Shared code of update rules that look beyond one element: gradients and parameters, up to eight elements at
// a time, whatever they are stored in.
#pragma once

#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/optimizer/draws.cuh"
#include "backends/cuda/kernels/optimizer/tensor_update_args.h"

namespace plimsoll::cuda {

// n of eight elements from i on, zeros behind them. `vec`: i is a multiple of 8.
__device__ __forceinline__ void load_some(const Operand& x, i64 i, int n, float* v, bool vec) {
  load_part(x, i, n, v, vec && aligned16(x));
}
__device__ __forceinline__ void store_some(const Operand& x, i64 i, int n, const float* v, bool vec) {
  store_part(x, i, n, v, vec && aligned16(x));
}
// Of elements from i on, how many there are before `end`, at most 8.
__device__ __forceinline__ int some_of(i64 i, i64 end) {
  return end - i >= 8 ? 8 : end > i ? (int)(end - i) : 0;
}

__device__ __forceinline__ bool is_skipped(const TensorStep& t) {
  const float clip = t.clip[0];
  return clip != clip;
}

// The clipped gradient.
__device__ __forceinline__ void load_gradient(const TensorStep& t, i64 i, int n, float* g, bool vec) {
  load_some(t.grad, i, n, g, vec);
  const float clip = t.clip[0];
#pragma unroll
  for (int e = 0; e < 8; ++e) g[e] = __fmul_rn(rounded_to(g[e], t.rounded), clip);
}

// Result `result` of the op, drawn for where it is bf16.
__device__ __forceinline__ void store_drawn(const TensorStep& t, const Operand& to, i64 i, int n, float* v,
                                            int result, bool vec) {
  if (t.random != nullptr && to.dtype == kBf16) {
    i64 block = -1;
    uint4 words = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e >= n) continue;
      const i64 element = t.first + i + e;
      if (element >> 2 != block)
        block = element >> 2, words = update_words(t.random, t.is_shared, t.key, (u32)block);
      v[e] = drawn(v[e], word_of(words, (int)(element & 3)), result);
    }
  }
  store_some(to, i, n, v, vec);
}

// p = p * decay - step, stored, drawn for and copied as the op says.
__device__ __forceinline__ void step_param(const TensorStep& t, i64 i, int n, float decay, const float* step,
                                           bool vec) {
  float p[8];
  load_some(t.param, i, n, p, vec);
#pragma unroll
  for (int e = 0; e < 8; ++e) p[e] = __fsub_rn(__fmul_rn(p[e], decay), step[e]);
  if (given(t.copy)) store_some(t.copy, i, n, p, vec);
  store_drawn(t, t.param, i, n, p, 0, vec);
}
// Of a skipped step.
__device__ __forceinline__ void copy_param(const TensorStep& t, i64 i, int n, bool vec) {
  if (!given(t.copy)) return;
  float p[8];
  load_some(t.param, i, n, p, vec);
  store_some(t.copy, i, n, p, vec);
}

}  // namespace plimsoll::cuda
