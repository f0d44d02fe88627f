// Codes of FP8 and FP4: E4M3, E5M2 and E2M1, to the bit those of numerics/minifloat-inl.h. What is beyond the
// largest code saturates.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

// kE and kM: bits of exponent and mantissa; kMax: the largest code; kNan: 0 where the format has none.
template <int kE, int kM, u32 kMaxCode, u32 kNanCode>
struct Mini {
  static constexpr int kMantissa = kM, kBias = (1 << (kE - 1)) - 1;
  static constexpr int kSignAt = kE + kM;
  static constexpr u32 kMax = kMaxCode, kNan = kNanCode;
};
using MiniE4m3 = Mini<4, 3, 0x7E, 0x7F>;
using MiniE5m2 = Mini<5, 2, 0x7B, 0x7F>;
using MiniE2m1 = Mini<2, 1, 0x7, 0>;

constexpr u32 kInfinityBits = 0x7f800000u;
constexpr float kLargestF32 = 3.402823466e+38f;

__device__ __forceinline__ u32 bits_of_magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }
__device__ __forceinline__ bool is_nan(float x) { return bits_of_magnitude(x) > kInfinityBits; }

// The code of x, which is no NaN, to nearest even. The sum of |x| and 2^(e + 23 - M) rounds |x| to the
// format's step at exponent e, and holds how many steps it is.
template <class M>
__device__ __forceinline__ u32 nearest_code(float x) {
  constexpr u32 kLeast = 127 + 1 - M::kBias;  // the exponent of the least normal number
  constexpr u32 kCap = (M::kMax << (23 - M::kMantissa)) + ((127 - M::kBias) << 23);
  const u32 a = bits_of_magnitude(x), capped = a < kCap ? a : kCap;
  const u32 exponent = capped >> 23 > kLeast ? capped >> 23 : kLeast;
  const u32 anchor = (exponent + 23 - M::kMantissa) << 23;
  const u32 sum = __float_as_uint(__fadd_rn(__uint_as_float(capped), __uint_as_float(anchor)));
  const u32 code = sum - anchor + ((exponent - kLeast) << M::kMantissa);
  return code | __float_as_uint(x) >> 31 << M::kSignAt;
}

// The code of x * multiplier. A NaN keeps its sign where the format has one, and is the largest number where
// it has none.
template <class M>
__device__ __forceinline__ u32 scaled_code(float x, float multiplier) {
  if (!is_nan(x)) return nearest_code<M>(__fmul_rn(x, multiplier));
  return M::kNan == 0 ? M::kMax : M::kNan | __float_as_uint(x) >> 31 << M::kSignAt;
}

// The same, up or down as the random word falls: what is cut off, as a fraction of 2^32, is added to it.
template <class M>
__device__ __forceinline__ u32 drawn_code(float x, float multiplier, u32 word) {
  if (is_nan(x)) return scaled_code<M>(x, multiplier);
  const float scaled = __fmul_rn(x, multiplier);
  const u32 a = bits_of_magnitude(scaled), field = a >> 23;
  const u32 significand = (a & 0x7fffffu) | (field == 0 ? 0 : 1u << 23);
  const int target = (int)(field == 0 ? 1 : field) - (127 - M::kBias), normal = target > 1 ? target : 1;
  const int cut = 23 - M::kMantissa + normal - target;
  const u32 whole = cut < 32 ? significand >> cut : 0;
  const u32 fraction = cut <= 32 ? significand << (32 - cut) : cut < 64 ? significand >> (cut - 32) : 0;
  const u32 carry = fraction + word < fraction ? 1 : 0;
  const u32 code = ((u32)(normal - 1) << M::kMantissa) + whole + carry;
  return (code < M::kMax ? code : M::kMax) | __float_as_uint(x) >> 31 << M::kSignAt;
}

// The number of a code.
template <class M>
__device__ __forceinline__ float value_of_code(u32 code) {
  constexpr u32 kMagnitudes = (1u << M::kSignAt) - 1;
  const u32 m = code & kMagnitudes, sign = code >> M::kSignAt << 31;
  // A subnormal is m steps of 2^(1 - bias - M).
  constexpr u32 kStep = (u32)(127 + 1 - M::kBias - M::kMantissa) << 23;
  u32 bits = m < 1u << M::kMantissa ? __float_as_uint(__fmul_rn((float)m, __uint_as_float(kStep)))
                                    : (m << (23 - M::kMantissa)) + ((u32)(127 - M::kBias) << 23);
  if (M::kNan != 0 && m > M::kMax) bits = M::kMax == 0x7B && m == 0x7C ? kInfinityBits : 0x7fc00000u;
  return __uint_as_float(bits | sign);
}

}  // namespace plimsoll::cuda
