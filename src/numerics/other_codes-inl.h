// Codes that are not exponent and mantissa: E8M0, NF4, int8; lookups among 16 numbers. As
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
#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE explicit Sixteen(const float* numbers) : numbers_(numbers) {}
  HWY_INLINE hn::Vec<D> operator()(BitsOf<D> index) const {
    return hn::Set(D(), numbers_[hn::GetLane(index)]);
  }
  HWY_INLINE hn::Vec<D> of_lower(BitsOf<D> index) const { return (*this)(index); }
  HWY_INLINE hn::Vec<D> of_upper(BitsOf<D> index) const { return (*this)(index); }

 private:
  const float* numbers_;
#else
  HWY_INLINE explicit Sixteen(const float* numbers)
      : lower_(hn::LoadU(D(), numbers)), upper_(hn::LoadU(D(), numbers + 16 - HWY_LANES(float))) {}
  HWY_INLINE hn::Vec<D> operator()(BitsOf<D> index) const {
    if constexpr (HWY_LANES(float) == 16) return of_lower(index);
    const auto lower = of_lower(hn::And(index, hn::Set(UnsignedOf<D>(), 7U)));
    return hn::IfNegativeThenElse(hn::BitCast(D(), hn::ShiftLeft<28>(index)), of_upper(index), lower);
  }
  /// Of an index below 8, and of one from 8 on.
  HWY_INLINE hn::Vec<D> of_lower(BitsOf<D> index) const {
    return hn::TableLookupLanes(lower_, hn::IndicesFromVec(D(), index));
  }
  HWY_INLINE hn::Vec<D> of_upper(BitsOf<D> index) const {
    if constexpr (HWY_LANES(float) == 16) return of_lower(index);
    const auto at = hn::And(index, hn::Set(UnsignedOf<D>(), 7U));
    return hn::TableLookupLanes(upper_, hn::IndicesFromVec(D(), at));
  }

 private:
  hn::Vec<D> lower_, upper_;
#endif
};

// ---- NF4: the number of thresholds below v; those of [-1, 1] stand half way between neighbours

/// Where each of 15 ascending thresholds stands in a balanced tree: node 1 is the root, 2 n and 2 n + 1 are
/// below node n. Node 0 is none and has the first threshold's number.
inline constexpr int kNf4Tree[16] = {0, 7, 3, 11, 1, 5, 9, 13, 0, 2, 4, 6, 8, 10, 12, 14};

/// Finds it in a tree of thresholds; NaN is code 7, which is 0.
class Nf4Coder {
 public:
  using D = hn::ScalableTag<float>;
  HWY_INLINE explicit Nf4Coder(const float* tree) : root_(hn::Set(D(), tree[1])), nodes_(tree) {}
  HWY_INLINE BitsOf<D> operator()(hn::Vec<D> v) const {
    const UnsignedOf<D> du;
    const auto one = hn::Set(du, 1U);
    const auto below = [=](BitsOf<D> node, hn::Vec<D> threshold) HWY_ATTR {
      const auto twice = hn::Add(node, node);
      return hn::IfThenElse(hn::RebindMask(du, hn::Gt(v, threshold)), hn::Add(twice, one), twice);
    };
    auto node = below(one, root_);
    node = below(node, nodes_.of_lower(node));
    node = below(node, nodes_.of_lower(node));
    node = below(node, nodes_.of_upper(node));
    const auto code = hn::Sub(node, hn::Set(du, 16U));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Set(du, 7U), code);
  }

 private:
  hn::Vec<D> root_;
  Sixteen nodes_;
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

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
