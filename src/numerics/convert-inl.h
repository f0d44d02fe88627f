// bf16, fp16 and tf32 in vectors of f32, for kernels that load, store or pack 16-bit numbers.
//
//   load_bf16(d, p)            lanes of f32 from as many bf16, exact          load_f16 likewise
//   store_bf16(v, d, p)        round to nearest even, overflow to infinity    store_f16 likewise
//   load_bf16_n, store_bf16_n  the first n lanes; nothing beyond is touched; zeros stand in the other lanes
//   bf16_bits(d, v)            u32 lanes, the bf16 in the lower half          f16_bits likewise
//   bf16_pairs(d, even, odd)   u32 lanes odd << 16 | even: what AVX512_BF16's dot product takes
//   round_tf32(d, v)           f32 with 10 bits of mantissa
//   *_stochastic(d, v, word)   up with the probability of the part cut off; word is 32 random bits a lane
//
// Exact, hence bit-identical on every instruction set. Subnormals are kept (VCVTNEPS2BF16 would flush them).
// A NaN stays one with its sign and upper bits and becomes quiet, as VCVTPS2PH does it. `d` is any tag of
// f32.
//
// To be included after hwy/foreach_target.h, like any "-inl.h" of Highway; it is compiled once per target.
#if defined(PLIMSOLL_NUMERICS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_CONVERT_INL_H_
#undef PLIMSOLL_NUMERICS_CONVERT_INL_H_
#else
#define PLIMSOLL_NUMERICS_CONVERT_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using UnsignedOf = hn::RebindToUnsigned<D>;
template <class D>
using BitsOf = hn::Vec<UnsignedOf<D>>;

// ---- rounding, the result as bits

template <class D>
HWY_INLINE BitsOf<D> bf16_bits(D, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000U));
  return hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded));
}

template <class D>
HWY_INLINE BitsOf<D> bf16_bits_stochastic(D, hn::Vec<D> v, BitsOf<D> word) {
  const UnsignedOf<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto rounded =
      hn::Add(bits, hn::ShiftRight<16>(word));  // of infinity nothing is cut off, so it stays
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000U));
  return hn::ShiftRight<16>(hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded));
}

template <class D>
HWY_INLINE BitsOf<D> bf16_pairs(D d, hn::Vec<D> even, hn::Vec<D> odd) {
  return hn::Or(bf16_bits(d, even), hn::ShiftLeft<16>(bf16_bits(d, odd)));
}

template <class D>
HWY_INLINE hn::Vec<D> round_tf32(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0xFFFU)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000U));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  return hn::BitCast(d, hn::AndNot(hn::Set(du, 0x1FFFU), chosen));
}

template <class D>
HWY_INLINE hn::Vec<D> round_tf32_stochastic(D d, hn::Vec<D> v, BitsOf<D> word) {
  const UnsignedOf<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto rounded = hn::Add(bits, hn::ShiftRight<19>(word));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000U));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  return hn::BitCast(d, hn::AndNot(hn::Set(du, 0x1FFFU), chosen));
}

// fp16 by integer arithmetic, for targets without F16C. Above 2^-14 the mantissa is cut after 10 bits and the
// exponent moved by 112; below, adding 1/2 makes the addition itself round to the subnormals' step of 2^-24.
template <class D>
HWY_INLINE BitsOf<D> f16_bits_portable(D d, hn::Vec<D> v) {
  const UnsignedOf<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, v);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFU));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1U));
  const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(du, 0xFFFU)));
  const auto normal = hn::Sub(hn::ShiftRight<13>(rounded), hn::Set(du, 112U << 10));
  const auto half = hn::Set(d, 0.5f);
  const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::Abs(v), half)), hn::BitCast(du, half));
  const auto is_small = hn::RebindMask(du, hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-14f)));
  const auto finite = hn::IfThenElse(is_small, subnormal, normal);
  const auto capped = hn::BitCast(du, hn::Min(hn::BitCast(di, finite), hn::Set(di, 0x7C00)));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FFU));
  const auto nan = hn::Or(payload, hn::Set(du, 0x7E00U));
  const auto sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(bits));
  return hn::Or(sign, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, capped));
}

// f32 of fp16 codes in the lower half of u32 lanes. A subnormal m * 2^-24 is (1 + m/1024) * 2^-14 less 2^-14.
template <class D>
HWY_INLINE hn::Vec<D> f16_from_bits_portable(D d, BitsOf<D> code) {
  const UnsignedOf<D> du;
  const auto sign = hn::ShiftLeft<31>(hn::ShiftRight<15>(code));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(code, hn::Set(du, 0x7FFFU)));
  const auto exponent = hn::And(magnitude, hn::Set(du, 31U << 23));
  const auto special = hn::Eq(exponent, hn::Set(du, 31U << 23));
  const auto move = hn::Set(du, 112U << 23);
  const auto moved = hn::Add(hn::Add(magnitude, move), hn::IfThenElseZero(special, move));
  const auto is_nan = hn::And(special, hn::Ne(magnitude, exponent));
  const auto normal = hn::Or(moved, hn::IfThenElseZero(is_nan, hn::Set(du, 0x00400000U)));
  const auto shifted = hn::BitCast(d, hn::Add(magnitude, hn::Set(du, 113U << 23)));
  const auto subnormal = hn::BitCast(du, hn::Sub(shifted, hn::Set(d, 0x1p-14f)));
  const auto is_subnormal = hn::Eq(exponent, hn::Zero(du));
  return hn::BitCast(d, hn::Or(sign, hn::IfThenElse(is_subnormal, subnormal, normal)));
}

template <class D>
HWY_INLINE BitsOf<D> f16_bits(D d, hn::Vec<D> v) {
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  const hn::Rebind<hwy::float16_t, D> d16;
  const hn::Rebind<uint16_t, D> du16;
  return hn::PromoteTo(UnsignedOf<D>(), hn::BitCast(du16, hn::DemoteTo(d16, v)));
#else
  return f16_bits_portable(d, v);
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> f16_from_bits(D d, BitsOf<D> code) {
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  const hn::Rebind<hwy::float16_t, D> d16;
  const hn::Rebind<uint16_t, D> du16;
  const hn::RebindToSigned<D> di;
  return hn::PromoteTo(d, hn::BitCast(d16, hn::DemoteTo(du16, hn::BitCast(di, code))));
#else
  return f16_from_bits_portable(d, code);
#endif
}

// ---- memory: codes are uint16_t, no alignment is asked for

/// The lower halves of u32 lanes as a vector of u16.
template <class D, class V32>
HWY_INLINE auto lower_halves(D, V32 bits) {
  const hn::Rebind<uint16_t, D> du16;
  const hn::RebindToSigned<D> di;
  return hn::DemoteTo(du16, hn::BitCast(di, bits));  // saturates; the values are below 2^16
}

template <class D>
HWY_INLINE hn::Vec<D> load_bf16(D d, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> du16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(UnsignedOf<D>(), hn::LoadU(du16, p))));
}

template <class D>
HWY_INLINE hn::Vec<D> load_f16(D d, const uint16_t* p) {
  const hn::Rebind<uint16_t, D> du16;
  const auto codes = hn::LoadU(du16, p);
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::BitCast(d16, codes));
#else
  return f16_from_bits_portable(d, hn::PromoteTo(UnsignedOf<D>(), codes));
#endif
}

template <class D>
HWY_INLINE void store_bf16(hn::Vec<D> v, D d, uint16_t* p) {
  const hn::Rebind<uint16_t, D> du16;
  hn::StoreU(lower_halves(d, bf16_bits(d, v)), du16, p);
}

/// fp16 as a vector of u16.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> f16_narrow(D d, hn::Vec<D> v) {
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::BitCast(hn::Rebind<uint16_t, D>(), hn::DemoteTo(d16, v));
#else
  return lower_halves(d, f16_bits_portable(d, v));
#endif
}

template <class D>
HWY_INLINE void store_f16(hn::Vec<D> v, D d, uint16_t* p) {
  const hn::Rebind<uint16_t, D> du16;
  hn::StoreU(f16_narrow(d, v), du16, p);
}

// Fewer than all lanes (n at most HWY_LANES(float)), by way of a buffer: AVX2 masks no 16-bit lanes. load and
// store are those of all lanes.
template <class Load>
HWY_INLINE auto load_part(const uint16_t* p, size_t n, Load load) {
  HWY_ALIGN uint16_t buffer[HWY_LANES(float)] = {};
  std::memcpy(buffer, p, HWY_MIN(n, HWY_LANES(float)) * sizeof(uint16_t));
  return load(buffer);
}
template <class Store>
HWY_INLINE void store_part(uint16_t* p, size_t n, Store store) {
  HWY_ALIGN uint16_t buffer[HWY_LANES(float)];
  store(buffer);
  std::memcpy(p, buffer, HWY_MIN(n, HWY_LANES(float)) * sizeof(uint16_t));
}

template <class D>
HWY_INLINE hn::Vec<D> load_bf16_n(D d, const uint16_t* p, size_t n) {
  return load_part(p, n, [=](const uint16_t* from) HWY_ATTR { return load_bf16(d, from); });
}
template <class D>
HWY_INLINE hn::Vec<D> load_f16_n(D d, const uint16_t* p, size_t n) {
  return load_part(p, n, [=](const uint16_t* from) HWY_ATTR { return load_f16(d, from); });
}
template <class D>
HWY_INLINE void store_bf16_n(hn::Vec<D> v, D d, uint16_t* p, size_t n) {
  store_part(p, n, [=](uint16_t* to) HWY_ATTR { store_bf16(v, d, to); });
}
template <class D>
HWY_INLINE void store_f16_n(hn::Vec<D> v, D d, uint16_t* p, size_t n) {
  store_part(p, n, [=](uint16_t* to) HWY_ATTR { store_f16(v, d, to); });
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
