// The update rules (ops/update_rules.h), element by element, in their order of operations: where the
// definition rounds between a multiplication and an addition, nothing is contracted. Tensors lie side by side
// in a launch.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/optimizer/draws.cuh"
#include "backends/cuda/kernels/optimizer/optimizer_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ void update_element(Rule rule, const float* f, float g, float& p, float* s) {
  if (rule == Rule::kAdamw || rule == Rule::kAdamL2) {
    if (rule == Rule::kAdamL2) g = __fmaf_rn(f[8], p, g);
    p = __fmul_rn(p, f[0]);
    s[0] = __fadd_rn(s[0], __fmul_rn(__fsub_rn(g, s[0]), f[2]));
    s[1] = __fadd_rn(__fmul_rn(s[1], f[3]), __fmul_rn(__fmul_rn(f[4], g), g));
    const float denominator = __fadd_rn(__fdiv_rn(__fsqrt_rn(s[1]), f[7]), f[5]);
    p = __fsub_rn(p, __fmul_rn(f[6], __fdiv_rn(s[0], denominator)));
  } else if (rule == Rule::kSgd) {
    p = __fmaf_rn(-f[0], __fmaf_rn(f[1], p, g), p);
  } else if (rule == Rule::kSgdMomentum) {
    const float decayed = __fmaf_rn(f[1], p, g);
    s[0] = __fmaf_rn(f[3], decayed, __fmul_rn(s[0], f[2]));
    p = __fmaf_rn(-f[0], f[4] != 0.0f ? __fmaf_rn(f[2], s[0], decayed) : s[0], p);
  } else {
    const float c = __fmaf_rn(f[3], g, __fmul_rn(s[0], f[2]));
    const float step = c != 0.0f ? copysignf(f[1], c) : 0.0f;
    p = __fsub_rn(__fmul_rn(p, f[0]), step);
    s[0] = __fmaf_rn(f[5], g, __fmul_rn(s[0], f[4]));
  }
}

// Blocks of 256 threads of eight elements.
extern "C" __global__ void update_tensors(const __grid_constant__ UpdateBatch b) {
  begin_grid();
  const i64 block = blockIdx.x;
  int at = 0;
  while (at + 1 < b.count && b.tensors[at + 1].first_block <= block) ++at;
  const UpdateTensor& t = b.tensors[at];
  const i64 i = (block - t.first_block) * kUpdateBlock + 8 * (i64)threadIdx.x;
  if (i >= t.n) return;
  const int n = t.n - i < 8 ? (int)(t.n - i) : 8;
  const float clip = b.clip[0];
  const bool skips = clip != clip;
  if (skips && !given(t.copy)) return;
  const bool vec = aligned16(t.param) && aligned16(t.grad) && aligned16(t.states[0]) &&
                   aligned16(t.states[1]) && aligned16(t.copy);
  const int states = b.rule == Rule::kAdamw || b.rule == Rule::kAdamL2 ? 2 : b.rule == Rule::kSgd ? 0 : 1;
  float p[8] = {}, g[8] = {}, s[2][8] = {};
  load_part(t.param, i, n, p, vec);
  if (!skips) {
    load_part(t.grad, i, n, g, vec);
    if (states > 0) load_part(t.states[0], i, n, s[0], vec);
    if (states > 1) load_part(t.states[1], i, n, s[1], vec);
  }
  if (!skips) {
    float fields[kUpdateFields];
    const int known = b.columns < kUpdateFields ? (int)b.columns : kUpdateFields;
#pragma unroll
    for (int f = 0; f < kUpdateFields; ++f) fields[f] = f < known ? b.groups[t.group * b.columns + f] : 0.0f;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      float state[2] = {s[0][e], s[1][e]};
      update_element(b.rule, fields, __fmul_rn(rounded_to(g[e], b.rounded), clip), p[e], state);
      s[0][e] = state[0], s[1][e] = state[1];
    }
  }
  if (given(t.copy)) store_part(t.copy, i, n, p, vec);
  if (skips) return;
  if (b.random != nullptr) {
    const bool draws_p = t.param.dtype == kBf16, draws_s0 = t.states[0].dtype == kBf16,
               draws_s1 = t.states[1].dtype == kBf16;
    if (draws_p || draws_s0 || draws_s1)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 words = update_words(b.random, b.is_shared, t.key, (u32)(((t.first + i) >> 2) + half));
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const u32 word = word_of(words, k);
          const int e = 4 * half + k;
          if (draws_p) p[e] = drawn(p[e], word, 0);
          if (draws_s0) s[0][e] = drawn(s[0][e], word, 1);
          if (draws_s1) s[1][e] = drawn(s[1][e], word, 2);
        }
      }
  }
  store_part(t.param, i, n, p, vec);
  if (states > 0) store_part(t.states[0], i, n, s[0], vec);
  if (states > 1) store_part(t.states[1], i, n, s[1], vec);
}

}  // namespace plimsoll::cuda
