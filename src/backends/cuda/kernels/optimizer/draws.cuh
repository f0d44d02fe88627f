// Stochastic rounding of what an update stores in bf16.
#pragma once

#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

// The value that bf16 holds, by the random bits of result `result` (ops::update_bits); NaN and infinities are
// kept.
__device__ __forceinline__ float drawn(float v, u32 word, int result) {
  const u32 upper = word >> 16, bits = (result == 0 ? upper : result == 1 ? word : upper ^ word) & 0xffffu;
  const u32 value = __float_as_uint(v);
  if ((value & 0x7f800000u) == 0x7f800000u) return v;
  return __uint_as_float((value + bits) & 0xffff0000u);
}

// The words of elements 4 * block to 4 * block + 3 in the stream of the key. `is_shared`: of an update that
// ranks share, as ops/update_draws.h has it.
__device__ __forceinline__ uint4 update_words(const u32* random, int is_shared, u32 key, u32 block) {
  if (is_shared) block += random[4], key ^= random[5];
  return philox4(block, 0, random[2], key, random[0], random[1]);
}

}  // namespace plimsoll::cuda
