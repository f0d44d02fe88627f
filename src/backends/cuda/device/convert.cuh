// Floating dtypes of 16 bits as stored, and f32. The instructions that have no name in the language; a host
// that compiles kernels as C++ puts its own file in the place of this one.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

__device__ __forceinline__ float from_bf16(u16 bits) { return __uint_as_float((u32)bits << 16); }
__device__ __forceinline__ float from_f16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
// Rounded to nearest even.
__device__ __forceinline__ u16 to_bf16(float value) {
#if __CUDA_ARCH__ < 800  // no such instruction
  const u32 word = __float_as_uint(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return (u16)0x7fff;
  return (u16)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
#else
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#endif
}
__device__ __forceinline__ u16 to_f16(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

}  // namespace plimsoll::cuda
