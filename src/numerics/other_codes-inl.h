// Codes that are not exponent and mantissa: E8M0, NF4, int8; lookups among 16 numbers; half bytes. As
// minifloat-inl.h: codes are u32 lanes, what is to nearest in the lower byte with anything above it.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_OTHER_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_OTHER_CODES_INL_H_
#undef PLIMSOLL_NUMERICS_OTHER_CODES_INL_H_
#else
#define PLIMSOLL_NUMERICS_OTHER_CODES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "numerics/convert-inl.h"
#include "numerics/formats.h"
#include "numerics/minifloat-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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

/// To nearest, half way up: the exponent of |v| with a half added to its mantissa. Of f32's subnormals those
/// from 1.5 * 2^-127 on are 2^-126, all below are 2^-127.
template <bool kSaturate, class D>
HWY_INLINE BitsOf<D> e8m0_nearest(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto infinity = hn::Set(du, 0x7F800000U);
  const auto a = magnitude_bits(d, v);
  const auto cap = hn::Set(di, kSaturate ? 0x7F000000 : 0x7F800000);
  const auto capped = hn::BitCast(du, hn::Min(hn::BitCast(di, a), cap));
  const auto rounded = hn::ShiftRight<23>(hn::Add(capped, hn::Set(du, 0x00400000U)));
  const auto code = hn::IfThenZeroElse(less(d, a, hn::Set(du, 0x00600000U)), rounded);
  if constexpr (!kSaturate) return code;
  return hn::IfThenElse(less(d, infinity, a), hn::Set(du, 255U), code);
}

template <class D>
HWY_INLINE hn::Vec<D> e8m0_from_code(D d, BitsOf<D> code) {
  const UnsignedOf<D> du;
  auto bits = hn::ShiftLeft<23>(code);
  bits = hn::IfThenElse(hn::Eq(code, hn::Zero(du)), hn::Set(du, 0x00400000U), bits);
  return hn::BitCast(d, hn::IfThenElse(hn::Eq(code, hn::Set(du, 255U)), hn::Set(du, 0x7FC00000U), bits));
}

// ---- 16 numbers

alignas(64) inline constexpr float kE2m1Values[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                                      -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

/// The number of an index below 16, in a register where one holds them all.
class Sixteen {
 public:
  using D = hn::ScalableTag<float>;
  HWY_INLINE explicit Sixteen(const float* numbers) {
#if HWY_TARGET == HWY_SCALAR
    numbers_ = numbers;
#else
    const D d;
    lower_ = hn::LoadU(d, numbers);
    upper_ = hn::LoadU(d, numbers + 16 - hn::Lanes(d));
#endif
  }
  HWY_INLINE hn::Vec<D> operator()(BitsOf<D> index) const {
    const D d;
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, numbers_[hn::GetLane(index)]);
#else
    const auto at = hn::IndicesFromVec(d, hn::And(index, hn::Set(UnsignedOf<D>(), HWY_LANES(float) - 1)));
    if constexpr (HWY_LANES(float) == 16) return hn::TableLookupLanes(lower_, at);
    const auto is_upper = hn::BitCast(d, hn::ShiftLeft<28>(index));
    return hn::IfNegativeThenElse(is_upper, hn::TableLookupLanes(upper_, at),
                                  hn::TableLookupLanes(lower_, at));
#endif
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  const float* numbers_;
#else
  hn::Vec<D> lower_, upper_;
#endif
};

// ---- NF4: the number of thresholds below v; those of [-1, 1] stand half way between neighbours

/// Finds it as in a balanced tree, whose levels are tables: {t7}, {t3 t11}, {t1 t5 t9 t13}, {t0 t2 .. t14}.
/// 15 thresholds, ascending; NaN is code 7, which is 0.
class Nf4Coder {
 public:
  using D = hn::ScalableTag<float>;
  HWY_INLINE explicit Nf4Coder(const float* thresholds) {
#if HWY_TARGET == HWY_SCALAR
    thresholds_ = thresholds;
#else
    const D d;
    root_ = hn::Set(d, thresholds[7]);
    HWY_ALIGN float numbers[HWY_LANES(float)] = {};
    for (int level = 1; level < 4; ++level) {
      const int step = 16 >> level;
      for (int i = 0; i < 1 << level; ++i) numbers[i] = thresholds[i * step + step / 2 - 1];
      below_[level - 1] = hn::Load(d, numbers);
    }
#endif
  }
  HWY_INLINE BitsOf<D> operator()(hn::Vec<D> v) const {
    const UnsignedOf<D> du;
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
#if HWY_TARGET == HWY_SCALAR
    uint32_t code = 0;
    for (int i = 0; i < 15; ++i) code += hn::GetLane(v) > thresholds_[i] ? 1U : 0U;
    return hn::IfThenElse(is_nan, hn::Set(du, 7U), hn::Set(du, code));
#else
    const D d;
    const auto one = hn::Set(du, 1U);
    auto code = hn::IfThenElseZero(hn::RebindMask(du, hn::Gt(v, root_)), one);
    for (const auto& level : below_) {
      const auto above = hn::Gt(v, hn::TableLookupLanes(level, hn::IndicesFromVec(d, code)));
      const auto twice = hn::Add(code, code);
      code = hn::IfThenElse(hn::RebindMask(du, above), hn::Add(twice, one), twice);
    }
    return hn::IfThenElse(is_nan, hn::Set(du, 7U), code);
#endif
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  const float* thresholds_;
#else
  hn::Vec<D> root_, below_[3];
#endif
};

// ---- int8: two's complement in the lower byte

template <class D>
HWY_INLINE BitsOf<D> int8_signed(D d, hn::Vec<D> v, BitsOf<D> magnitude) {
  const UnsignedOf<D> du;
  const auto is_negative = hn::RebindMask(du, hn::Lt(v, hn::Zero(d)));
  const auto code = hn::IfThenElse(is_negative, hn::Sub(hn::Zero(du), magnitude), magnitude);
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Zero(du), code);
  return hn::And(kept, hn::Set(du, 0xFFU));
}

/// The lower bits of v + 1.5 * 2^23 are v to nearest even.
template <class D>
HWY_INLINE BitsOf<D> int8_nearest(D d, hn::Vec<D> v) {
  const auto number = hn::IfThenZeroElse(hn::IsNaN(v), v);
  const auto capped = hn::Min(hn::Max(number, hn::Set(d, -127.0f)), hn::Set(d, 127.0f));
  return hn::BitCast(UnsignedOf<D>(), hn::Add(capped, hn::Set(d, 0x1.8p23f)));
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
