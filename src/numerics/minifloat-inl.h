// Rounding to any small binary format and back, in vectors of f32: one rule for fp16, bf16, tf32, E4M3, E5M2
// and E2M1, given the widths of exponent and mantissa; E8M0, NF4 and int8 have rules of their own
// (other_codes-inl.h).
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

/// f32's bits of the number that a magnitude's code would be, were there no infinity and no NaN.
template <class S>
constexpr uint32_t cap_bits(uint32_t code) {
  return (code + S::kMove) << S::kShift;
}

/// The code of v to nearest even, whole, of a format of at most a byte: what finish_code makes of
/// round_nearest, in half the operations. It stands in the lower byte; above that stands anything.
///
/// With |v| = c below 2^(e+1), and e at least the format's least exponent, c + 2^(e + 23 - M) has the
/// format's step as its last bit, so the addition rounds. Its bits are e + 150 - M above 23 bits of mantissa,
/// which hold the number of steps m, at most 2^(M + 1); m + 2^M (e - least) is the code. With k steps more in
/// what is added, the sum of mantissa and exponent << M is the code modulo 256. k is even, which keeps ties
/// to even.
template <class S, bool kSaturate, class D>
HWY_INLINE BitsOf<D> nearest_code(D d, hn::Vec<D> v) {
  static_assert(S::kExponentBits + S::kMantissaBits < 8);
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  constexpr int kLeast = 1 - S::kBias;
  constexpr uint32_t kField = 127 + S::kShift + kLeast;
  constexpr uint32_t kSteps = (0U - (kField << S::kMantissaBits)) & 0xFFU;
  static_assert(kSteps % 2 == 0);
  constexpr uint32_t kFactor = static_cast<uint32_t>(127 + S::kShift) << 23 | kSteps;
  constexpr uint32_t kCap = cap_bits<S>(kSaturate ? S::kMax : S::kOverflow);
  const auto exponents = hn::Set(du, 0x7F800000U);
  const auto min = [=](auto a, uint32_t b) HWY_ATTR {
    return hn::BitCast(du, hn::Min(hn::BitCast(di, a), hn::Set(di, static_cast<int32_t>(b))));
  };
  const auto max = [=](auto a, uint32_t b) HWY_ATTR {
    return hn::BitCast(du, hn::Max(hn::BitCast(di, a), hn::Set(di, static_cast<int32_t>(b))));
  };
  const auto a = magnitude_bits(d, v);
  const auto capped = min(a, kCap);
  const auto power = max(hn::And(capped, exponents), static_cast<uint32_t>(127 + kLeast) << 23);
  const auto factor = hn::BitCast(d, hn::Set(du, kFactor));
  const auto sum = hn::BitCast(du, hn::MulAdd(hn::BitCast(d, power), factor, hn::BitCast(d, capped)));
  auto code = hn::Add(sum, hn::ShiftRight<S::kShift>(sum));
  auto signs = hn::BitCast(du, v);
  // A NaN was capped like infinity.
  if constexpr (!S::kHasNan)
    signs = hn::IfThenZeroElse(less(d, exponents, a), signs);
  else if constexpr (kSaturate || S::kOverflow != S::kNan)
    code = hn::IfThenElse(less(d, exponents, a), hn::Set(du, S::kNan), code);
  constexpr int kSignAt = S::kExponentBits + S::kMantissaBits;
  return hn::OrAnd(code, hn::ShiftRight<31 - kSignAt>(signs), hn::Set(du, 1U << kSignAt));
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

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
