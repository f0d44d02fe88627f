// Philox-4x32-10, as numerics/philox.h.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

// Fewer than 10 rounds unrolled: draws of several elements are computed one after the other, in fewer
// registers.
template <int kUnrolled = 10>
__device__ __forceinline__ uint4 philox4(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll kUnrolled
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    const u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c1 = (u32)p1, c3 = (u32)p0, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}
__device__ __forceinline__ u32 word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

}  // namespace plimsoll::cuda
