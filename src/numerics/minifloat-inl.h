// Rounding to any small binary format and back, in vectors of f32: one rule for fp16, bf16, tf32, E4M3, E5M2
// and E2M1, given the widths of exponent and mantissa; E8M0, NF4 and int8 have rules of their own.
//
// Codes are u32 lanes. A magnitude's code is exponent and mantissa side by side, so that rounding up carries
// from one into the other, and what is too large is simply beyond the largest finite code:
//
//   normal       (bits + half a step, ties to even) >> (23 - M), its exponent moved by 127 - bias
//   subnormal    |x| + 2^k has its last bit at the format's smallest step; the addition rounds
//   stochastic   the part cut off as a fraction of 2^32; a random word is added, its carry rounds up
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_MINIFLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_MINIFLOAT_INL_H_
#undef PLIMSOLL_NUMERICS_MINIFLOAT_INL_H_
#else
#define PLIMSOLL_NUMERICS_MINIFLOAT_INL_H_
#endif

#include <bit>
#include <cstdint>

#include "hwy/highway.h"
#include "numerics/convert-inl.h"
#include "numerics/formats.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// kMax: the largest finite magnitude's code; kOverflow: what is beyond it, infinity, NaN or kMax; kNan: the
/// quiet NaN; where the format has none, what stands for it, without a sign.
template <int kE, int kM, uint32_t kMaxCode, uint32_t kOverflowCode, uint32_t kNanCode>
struct Mini {
  static constexpr int kExponentBits = kE, kMantissaBits = kM, kBias = (1 << (kE - 1)) - 1;
  static constexpr int kShift = 23 - kM;  // bits cut off
  static constexpr uint32_t kMove = static_cast<uint32_t>(127 - kBias) << kM;
  static constexpr uint32_t kMax = kMaxCode, kOverflow = kOverflowCode, kNan = kNanCode;
  static constexpr bool kHasInfinity = kE >= 5;
  static constexpr bool kHasNan = kE > 2;
};
using MiniTf32 = Mini<8, 10, 0x3FBFF, 0x3FC00, 0x3FE00>;
using MiniF16 = Mini<5, 10, 0x7BFF, 0x7C00, 0x7E00>;
using MiniBf16 = Mini<8, 7, 0x7F7F, 0x7F80, 0x7FC0>;
using MiniE4m3 = Mini<4, 3, 0x7E, 0x7F, 0x7F>;
using MiniE5m2 = Mini<5, 2, 0x7B, 0x7C, 0x7F>;
using MiniE2m1 = Mini<2, 1, 0x7, 0x7, 0x7>;

template <class D>
HWY_INLINE BitsOf<D> magnitude_bits(D, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  return hn::And(hn::BitCast(du, v), hn::Set(du, 0x7FFFFFFFU));
}

/// Both below 2^31, so that signed order, which every target has, is theirs.
template <class D>
HWY_INLINE hn::Mask<UnsignedOf<D>> less(D, BitsOf<D> a, BitsOf<D> b) {
  const hn::RebindToSigned<D> di;
  const UnsignedOf<D> du;
  return hn::RebindMask(du, hn::Lt(hn::BitCast(di, a), hn::BitCast(di, b)));
}

/// The code of |v| to nearest even, not capped: beyond S::kMax it is overflow. Of a NaN it is anything.
template <class S, class D>
HWY_INLINE BitsOf<D> round_nearest(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const auto a = magnitude_bits(d, v);
  const auto odd = hn::And(hn::ShiftRight<S::kShift>(a), hn::Set(du, 1U));
  const auto half = hn::Set(du, (1U << (S::kShift - 1)) - 1);
  const auto rounded = hn::Add(a, hn::Add(odd, half));
  const auto normal = hn::Sub(hn::ShiftRight<S::kShift>(rounded), hn::Set(du, S::kMove));
  if constexpr (S::kExponentBits == 8) return normal;  // the subnormals are f32's own
  constexpr auto kAnchor = static_cast<uint32_t>(127 + 1 - S::kBias - S::kMantissaBits + 23) << 23;
  constexpr auto kLeastNormal = static_cast<uint32_t>(127 + 1 - S::kBias) << 23;
  const auto anchor = hn::Set(du, kAnchor);
  const auto sum = hn::Add(hn::Abs(v), hn::BitCast(d, anchor));
  const auto subnormal = hn::Sub(hn::BitCast(du, sum), anchor);
  return hn::IfThenElse(less(d, a, hn::Set(du, kLeastNormal)), subnormal, normal);
}

/// 1 in the lanes where a + b reaches 2^32.
template <class DU>
HWY_INLINE hn::Vec<DU> carry_of(DU, hn::Vec<DU> a, hn::Vec<DU> b) {
  const auto sum = hn::Add(a, b);
  return hn::ShiftRight<31>(hn::Or(hn::And(a, b), hn::AndNot(sum, hn::Or(a, b))));
}

/// `significand` * 2^-cut (below 2^24), rounded up with the probability of its fraction.
template <class D>
HWY_INLINE BitsOf<D> cut_stochastically(D d, BitsOf<D> significand, BitsOf<D> cut, BitsOf<D> word) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto at_most_31 = [=](auto bits) HWY_ATTR {
    return hn::BitCast(du, hn::Min(hn::BitCast(di, bits), hn::Set(di, 31)));
  };
  const auto k32 = hn::Set(du, 32U), k33 = hn::Set(du, 33U);
  const auto whole = hn::Shr(significand, at_most_31(cut));
  const auto is_near = less(d, cut, k33);
  const auto left = hn::IfThenElse(is_near, hn::Sub(k32, cut), hn::Zero(du));
  const auto right = hn::IfThenElse(is_near, hn::Zero(du), at_most_31(hn::Sub(cut, k32)));
  const auto fraction = hn::IfThenElse(is_near, hn::Shl(significand, left), hn::Shr(significand, right));
  return hn::Add(whole, carry_of(du, fraction, word));
}

/// The code of |v|, up or down as `word` falls; not capped.
template <class S, class D>
HWY_INLINE BitsOf<D> round_stochastic(D d, hn::Vec<D> v, BitsOf<D> word) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto a = magnitude_bits(d, v);
  const auto field = hn::ShiftRight<23>(a);
  const auto is_subnormal = hn::Eq(field, hn::Zero(du));
  const auto one = hn::Set(du, 1U);
  const auto exponent = hn::IfThenElse(is_subnormal, one, field);
  const auto implicit = hn::IfThenZeroElse(is_subnormal, hn::Set(du, 1U << 23));
  const auto significand = hn::Or(hn::And(a, hn::Set(du, 0x7FFFFFU)), implicit);
  // The exponent in the target; where it is below 1, the number is a subnormal there and loses more bits.
  const auto target = hn::Sub(hn::BitCast(di, exponent), hn::Set(di, 127 - S::kBias));
  const auto normal = hn::Max(target, hn::Set(di, 1));
  const auto cut = hn::Add(hn::Set(du, uint32_t{S::kShift}), hn::BitCast(du, hn::Sub(normal, target)));
  const auto above = hn::BitCast(du, hn::ShiftLeft<S::kMantissaBits>(hn::Sub(normal, hn::Set(di, 1))));
  return hn::Add(above, cut_stochastically(d, significand, cut, word));
}

/// A code of |v| made whole: capped at `cap` (S::kMax or S::kOverflow), NaN and sign put in.
template <class S, class D>
HWY_INLINE BitsOf<D> finish_code(D d, hn::Vec<D> v, BitsOf<D> code, uint32_t cap) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto a = magnitude_bits(d, v);
  const auto infinity = hn::Set(du, 0x7F800000U);
  code = hn::BitCast(du, hn::Min(hn::BitCast(di, code), hn::Set(di, static_cast<int32_t>(cap))));
  const auto sign =
      hn::ShiftLeft<S::kExponentBits + S::kMantissaBits>(hn::ShiftRight<31>(hn::BitCast(du, v)));
  const auto is_nan = less(d, infinity, a);
  auto nan = hn::Set(du, S::kNan);
  if constexpr (S::kMantissaBits >= 7)
    nan = hn::Or(nan, hn::And(hn::ShiftRight<S::kShift>(a), hn::Set(du, (1U << S::kMantissaBits) - 1)));
  if constexpr (!S::kHasNan) return hn::IfThenElse(is_nan, nan, hn::Or(sign, code));
  return hn::Or(sign, hn::IfThenElse(is_nan, nan, code));
}

/// The number of a code.
template <class S, class D>
HWY_INLINE hn::Vec<D> from_code(D d, BitsOf<D> code) {
  const UnsignedOf<D> du;
  constexpr int kSignAt = S::kExponentBits + S::kMantissaBits;
  const auto magnitude = hn::And(code, hn::Set(du, (1U << kSignAt) - 1));
  const auto sign = hn::ShiftLeft<31>(hn::ShiftRight<kSignAt>(code));
  const auto wide = hn::ShiftLeft<S::kShift>(magnitude);
  const auto normal = hn::Add(wide, hn::Set(du, static_cast<uint32_t>(127 - S::kBias) << 23));
  // m 2^(1 - bias - M) is (1 + m 2^-M) 2^(1 - bias) less 2^(1 - bias), exactly.
  const auto one = hn::Set(du, static_cast<uint32_t>(128 - S::kBias) << 23);
  const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(wide, one)), hn::BitCast(d, one));
  const auto is_subnormal = less(d, magnitude, hn::Set(du, 1U << S::kMantissaBits));
  auto bits = hn::IfThenElse(is_subnormal, hn::BitCast(du, subnormal), normal);
  if constexpr (S::kHasInfinity)
    bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(du, S::kOverflow)), hn::Set(du, 0x7F800000U), bits);
  if constexpr (S::kHasNan) {
    const auto largest = hn::Set(du, S::kHasInfinity ? S::kOverflow : S::kMax);
    bits = hn::IfThenElse(less(d, largest, magnitude), hn::Set(du, 0x7FC00000U), bits);
  }
  return hn::BitCast(d, hn::Or(bits, sign));
}

// ---- E8M0: the exponent alone

/// Where |v| stands between 2^(code - 127) and the next power, as a fraction of 2^32 beside the lower code.
template <class D>
struct E8m0Place {
  BitsOf<D> code, fraction;
};
template <class D>
HWY_INLINE E8m0Place<D> e8m0_place(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const auto a = magnitude_bits(d, v);
  // f32's subnormals: from 2^-127 = 0x00400000 to 2^-126, and what is below counts as 2^-127.
  const auto least = hn::Set(du, 0x00400000U);
  const auto above = hn::IfThenZeroElse(less(d, a, least), hn::Sub(a, least));
  const auto is_subnormal = less(d, a, hn::Set(du, 0x00800000U));
  return {hn::ShiftRight<23>(a), hn::IfThenElse(is_subnormal, hn::ShiftLeft<10>(above), hn::ShiftLeft<9>(a))};
}

/// `up` is 0 or 1 a lane.
template <class D>
HWY_INLINE BitsOf<D> e8m0_finish(D d, hn::Vec<D> v, BitsOf<D> code, BitsOf<D> up, bool saturate) {
  const UnsignedOf<D> du;
  const auto nan = hn::Set(du, 255U), infinity = hn::Set(du, 0x7F800000U);
  const auto a = magnitude_bits(d, v);
  const auto rounded = hn::IfThenElse(less(d, a, infinity), hn::Add(code, up), nan);
  if (!saturate) return rounded;
  const auto is_beyond = hn::And(hn::Eq(rounded, nan), hn::Not(less(d, infinity, a)));
  return hn::IfThenElse(is_beyond, hn::Set(du, 254U), rounded);
}

template <class D>
HWY_INLINE hn::Vec<D> e8m0_from_code(D d, BitsOf<D> code) {
  const UnsignedOf<D> du;
  auto bits = hn::ShiftLeft<23>(code);
  bits = hn::IfThenElse(hn::Eq(code, hn::Zero(du)), hn::Set(du, 0x00400000U), bits);
  return hn::BitCast(d, hn::IfThenElse(hn::Eq(code, hn::Set(du, 255U)), hn::Set(du, 0x7FC00000U), bits));
}

// ---- NF4: the number of thresholds below v; those of [-1, 1] stand half way between neighbours

template <class D>
HWY_INLINE BitsOf<D> nf4_code(D d, hn::Vec<D> v, const float* thresholds) {
  const UnsignedOf<D> du;
  const auto one = hn::Set(du, 1U);
  auto code = hn::Zero(du);
  for (int i = 0; i < 15; ++i) {
    const auto above = hn::RebindMask(du, hn::Gt(v, hn::Set(d, thresholds[i])));
    code = hn::Add(code, hn::IfThenElseZero(above, one));
  }
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 7U), code);  // 7 is 0
}

template <class D>
HWY_INLINE hn::Vec<D> nf4_from_code(D d, BitsOf<D> code) {
  const hn::RebindToSigned<D> di;
  return hn::GatherIndex(d, kNf4Values, hn::BitCast(di, code));
}

// ---- int8: two's complement in the lower byte

template <class D>
HWY_INLINE BitsOf<D> int8_signed(D d, hn::Vec<D> v, BitsOf<D> magnitude) {
  const UnsignedOf<D> du;
  const auto is_negative = hn::RebindMask(du, hn::Lt(v, hn::Zero(d)));
  const auto code = hn::IfThenElse(is_negative, hn::Sub(hn::Zero(du), magnitude), magnitude);
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Zero(du), code);
  return hn::And(kept, hn::Set(du, 0xFFU));
}

template <class D>
HWY_INLINE BitsOf<D> int8_nearest(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const auto anchor = hn::Set(d, 0x1p23f);
  const auto capped = hn::Min(hn::Abs(v), hn::Set(d, 127.0f));
  return int8_signed(d, v, hn::Sub(hn::BitCast(du, hn::Add(capped, anchor)), hn::BitCast(du, anchor)));
}

template <class D>
HWY_INLINE BitsOf<D> int8_stochastic(D d, hn::Vec<D> v, BitsOf<D> word) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto a = magnitude_bits(d, hn::Min(hn::Abs(v), hn::Set(d, 127.0f)));
  const auto field = hn::ShiftRight<23>(a);
  const auto is_subnormal = hn::Eq(field, hn::Zero(du));
  const auto implicit = hn::IfThenZeroElse(is_subnormal, hn::Set(du, 1U << 23));
  const auto significand = hn::Or(hn::And(a, hn::Set(du, 0x7FFFFFU)), implicit);
  const auto cut = hn::Max(hn::Sub(hn::Set(di, 150), hn::BitCast(di, field)), hn::Set(di, 1));
  return int8_signed(d, v, cut_stochastically(d, significand, hn::BitCast(du, cut), word));
}

template <class D>
HWY_INLINE hn::Vec<D> int8_from_code(D d, BitsOf<D> code) {
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::ShiftRight<24>(hn::ShiftLeft<24>(hn::BitCast(di, code))));
}

// ---- half bytes: the even index in the lower half; 16 codes at once, the shortest block

HWY_INLINE void pack_nibbles(const uint8_t* codes, size_t n, uint8_t* to) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<uint16_t, 8> d;
  const hn::FixedTag<uint8_t, 8> d8;
  for (; i + 16 <= n; i += 16) {
    const auto pairs = hn::LoadU(d, reinterpret_cast<const uint16_t*>(codes + i));
    const auto joined = hn::Or(hn::And(pairs, hn::Set(d, uint16_t{0xF})),
                               hn::And(hn::ShiftRight<4>(pairs), hn::Set(d, uint16_t{0xF0})));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<decltype(d)>(), joined)), d8, to + i / 2);
  }
#endif
  for (; i + 1 < n; i += 2) to[i / 2] = static_cast<uint8_t>(codes[i] | codes[i + 1] << 4);
  if (i < n) to[i / 2] = codes[i];
}

HWY_INLINE void unpack_nibbles(const uint8_t* from, size_t n, uint8_t* codes) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<uint16_t, 8> d;
  const hn::FixedTag<uint8_t, 8> d8;
  for (; i + 16 <= n; i += 16) {
    const auto bytes = hn::PromoteTo(d, hn::LoadU(d8, from + i / 2));
    const auto apart = hn::And(hn::Or(bytes, hn::ShiftLeft<4>(bytes)), hn::Set(d, uint16_t{0x0F0F}));
    hn::StoreU(apart, d, reinterpret_cast<uint16_t*>(codes + i));
  }
#endif
  for (; i < n; ++i) codes[i] = static_cast<uint8_t>(from[i / 2] >> (i % 2 * 4) & 15);
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
