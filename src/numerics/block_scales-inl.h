// Scales of blocks from their largest magnitudes, and what they stand for, side by side: whole vectors are
// read and written.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_BLOCK_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_BLOCK_SCALES_INL_H_
#undef PLIMSOLL_NUMERICS_BLOCK_SCALES_INL_H_
#else
#define PLIMSOLL_NUMERICS_BLOCK_SCALES_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "numerics/block_runs-inl.h"
#include "numerics/blocks.h"
#include "numerics/minifloat-inl.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

inline constexpr float kMaxF32 = std::numeric_limits<float>::max();

/// A power of two not above 448 / amax.
HWY_INLINE float power_of_two_scale(float amax) {
  if (!(amax > 0) || std::isinf(amax)) return 1;
  const float scale = std::min(448.0F / amax, kMaxF32);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xFF800000U);
}

/// Codes: the least power of two not below amax / 448, at least 2^-127; multipliers: its inverse.
HWY_INLINE void mx_scales(const float* amax, size_t blocks, uint32_t* codes, float* multipliers) {
  const F32 d;
  const U32 du;
  constexpr float kInverse = 1.0F / 448.0F;
  for (size_t i = 0; i < blocks; i += kLanes) {
    const auto bits = hn::BitCast(du, hn::Mul(hn::Load(d, amax + i), hn::Set(d, kInverse)));
    const auto up = hn::ShiftRight<23>(hn::Add(bits, hn::Set(du, 0x7FFFFFU)));
    const auto least = less(d, bits, hn::Set(du, 0x00400001U));
    const auto beyond = hn::Eq(bits, hn::Set(du, 0x7F800000U));
    const auto most = hn::Set(du, 0xFEU);
    const auto code = hn::IfThenElse(beyond, most, hn::IfThenZeroElse(least, up));
    const auto inverse = hn::ShiftLeft<23>(hn::Sub(most, code));
    hn::Store(code, du, codes + i);
    hn::Store(hn::BitCast(d, hn::IfThenElse(beyond, hn::Set(du, 0x00400000U), inverse)), d, multipliers + i);
  }
}

HWY_INLINE float mx_value(uint32_t code) {
  return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23);
}

/// Codes: E4M3 of amax / 6 in units of the tensor's scale; multipliers: the inverse of what they stand for.
HWY_INLINE void nv_scales(const float* amax, size_t blocks, const TensorScale& tensor, uint32_t* codes,
                          float* multipliers) {
  const F32 d;
  const U32 du;
  constexpr float kSixth = 1.0F / 6.0F;
  const V sixth = hn::Set(d, tensor.scale * kSixth), unit = hn::Set(d, 1.0F / tensor.scale);
  for (size_t i = 0; i < blocks; i += kLanes) {
    const auto rounded = nearest_code<MiniE4m3, true>(d, hn::Mul(hn::Load(d, amax + i), sixth));
    const auto code = hn::And(rounded, hn::Set(du, 0xFFU));
    const V value = hn::Mul(from_code<MiniE4m3>(d, code), unit);
    hn::Store(code, du, codes + i);
    hn::Store(hn::Min(hn::Div(hn::Set(d, 1.0F), value), hn::Set(d, kMaxF32)), d, multipliers + i);
  }
}

HWY_INLINE void nv_factors(const uint32_t* codes, size_t blocks, const TensorScale& tensor, float* factors) {
  const F32 d;
  for (size_t i = 0; i < blocks; i += kLanes) {
    const V value = from_code<MiniE4m3>(d, hn::Load(U32(), codes + i));
    const V scaled = hn::Mul(value, hn::Set(d, tensor.amax));
    hn::Store(hn::Mul(scaled, hn::Set(d, 1.0F / 2688.0F)), d, factors + i);
  }
}

template <class T>
HWY_INLINE void put(uint8_t* scales, size_t index, T value) {
  std::memcpy(scales + index * sizeof(T), &value, sizeof(T));
}
template <class T>
HWY_INLINE T get(const uint8_t* scales, size_t index) {
  T value;
  std::memcpy(&value, scales + index * sizeof(T), sizeof(T));
  return value;
}

/// The lower bytes of codes.
HWY_INLINE void put_bytes(const uint32_t* codes, size_t n, uint8_t* to) {
  encode_vectors<uint8_t, false>(reinterpret_cast<const float*>(codes), n, reinterpret_cast<std::byte*>(to),
                                 [](V v, size_t) HWY_ATTR { return hn::BitCast(U32(), v); });
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
