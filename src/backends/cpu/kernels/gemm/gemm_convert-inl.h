// Conversions on the way into packed operands and out of fp32 sums, for the kernels that multiply in fp32.
// All round to nearest even; bf16 and fp16 keep denormals, NaN stays NaN.
#include "hwy/highway.h"

#if defined(PLIMSOLL_GEMM_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_CONVERT_INL_H_
#undef PLIMSOLL_GEMM_CONVERT_INL_H_
#else
#define PLIMSOLL_GEMM_CONVERT_INL_H_
#endif

#include <bit>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/gemm/gemm.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// The rounding that keeps all but the kDropped lowest bits of an f32: 16 make a bf16, 13 a TF32.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <int kDropped>
HWY_INLINE uint32_t rounded_bits(uint32_t x) {
  if ((x & 0x7fffffffu) > 0x7f800000u) return (x | 0x00400000u) >> kDropped << kDropped;
  return (x + (1u << (kDropped - 1)) - 1 + (x >> kDropped & 1u)) >> kDropped << kDropped;
}
template <int kDropped>
HWY_INLINE void drop(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    x[i] = std::bit_cast<float>(rounded_bits<kDropped>(std::bit_cast<uint32_t>(x[i])));
}
HWY_INLINE void bf16_to_f32(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
}
HWY_INLINE void f32_to_bf16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<uint16_t>(rounded_bits<16>(std::bit_cast<uint32_t>(from[i])) >> 16);
}
HWY_INLINE void f16_to_f32(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(std::bit_cast<_Float16>(from[i]));
}
HWY_INLINE void f32_to_f16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<uint16_t>(static_cast<_Float16>(from[i]));
}

#else

using OfFloats = HWY_NAMESPACE::D;
using OfWords = hn::RebindToUnsigned<OfFloats>;
using OfHalves = hn::Rebind<uint16_t, OfFloats>;
using OfF16 = hn::Rebind<hwy::float16_t, OfFloats>;

template <int kDropped>
HWY_INLINE hn::Vec<OfWords> rounded_bits(hn::Vec<OfWords> x) {
  const OfWords d;
  const auto odd = hn::And(hn::ShiftRight<kDropped>(x), hn::Set(d, 1u));
  const auto sum = hn::Add(x, hn::Add(hn::Set(d, (1u << (kDropped - 1)) - 1), odd));
  const auto nan = hn::Gt(hn::And(x, hn::Set(d, 0x7fffffffu)), hn::Set(d, 0x7f800000u));
  const auto all = hn::IfThenElse(nan, hn::Or(x, hn::Set(d, 0x00400000u)), sum);
  return hn::And(all, hn::Set(d, ~0u << kDropped));
}

// body(from, to) on whole vectors; what is left goes through a vector's worth of memory.
template <typename From, typename To, typename Body>
HWY_INLINE void for_vectors(const From* from, To* to, int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(from + i, to + i);
  if (i == count) return;
  From last[kLanes] = {};
  To result[kLanes];
  std::memcpy(last, from + i, static_cast<size_t>(count - i) * sizeof(From));
  body(last, result);
  std::memcpy(to + i, result, static_cast<size_t>(count - i) * sizeof(To));
}

template <int kDropped>
HWY_INLINE void drop(float* x, int64_t count) {
  const OfWords d;
  const auto body = [&](const float* p, float* q) HWY_ATTR {
    const auto bits = hn::BitCast(d, hn::LoadU(OfFloats(), p));
    hn::StoreU(hn::BitCast(OfFloats(), rounded_bits<kDropped>(bits)), OfFloats(), q);
  };
  for_vectors(x, x, count, body);
}
HWY_INLINE void bf16_to_f32(const uint16_t* from, float* to, int64_t count) {
  const auto body = [](const uint16_t* p, float* q) HWY_ATTR {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(OfWords(), hn::LoadU(OfHalves(), p)));
    hn::StoreU(hn::BitCast(OfFloats(), bits), OfFloats(), q);
  };
  for_vectors(from, to, count, body);
}
HWY_INLINE void f32_to_bf16(const float* from, uint16_t* to, int64_t count) {
  const auto body = [](const float* p, uint16_t* q) HWY_ATTR {
    const auto bits = rounded_bits<16>(hn::BitCast(OfWords(), hn::LoadU(OfFloats(), p)));
    hn::StoreU(hn::DemoteTo(OfHalves(), hn::BitCast(hn::RebindToSigned<OfWords>(), hn::ShiftRight<16>(bits))),
               OfHalves(), q);
  };
  for_vectors(from, to, count, body);
}
HWY_INLINE void f16_to_f32(const uint16_t* from, float* to, int64_t count) {
  const auto body = [](const uint16_t* p, float* q) HWY_ATTR {
    hn::StoreU(hn::PromoteTo(OfFloats(), hn::BitCast(OfF16(), hn::LoadU(OfHalves(), p))), OfFloats(), q);
  };
  for_vectors(from, to, count, body);
}
HWY_INLINE void f32_to_f16(const float* from, uint16_t* to, int64_t count) {
  const auto body = [](const float* p, uint16_t* q) HWY_ATTR {
    hn::StoreU(hn::BitCast(OfHalves(), hn::DemoteTo(OfF16(), hn::LoadU(OfFloats(), p))), OfHalves(), q);
  };
  for_vectors(from, to, count, body);
}

#endif

// `count` elements as f32.
HWY_INLINE void widen(const void* from, ir::DType dtype, float* to, int64_t count) {
  if (dtype == ir::DType::kBf16) return bf16_to_f32(static_cast<const uint16_t*>(from), to, count);
  if (dtype == ir::DType::kF16) return f16_to_f32(static_cast<const uint16_t*>(from), to, count);
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

HWY_INLINE void narrow(const float* from, ir::DType dtype, void* to, int64_t count) {
  if (dtype == ir::DType::kBf16) return f32_to_bf16(from, static_cast<uint16_t*>(to), count);
  if (dtype == ir::DType::kF16) return f32_to_f16(from, static_cast<uint16_t*>(to), count);
  std::memmove(to, from, static_cast<size_t>(count) * sizeof(float));
}

// Elements of `dtype` as f32 values that `precision` knows.
HWY_INLINE void convert(const void* from, ir::DType dtype, Precision precision, float* to, int64_t count) {
  widen(from, dtype, to, count);
  if (precision == Precision::kTf32 && dtype == ir::DType::kF32) drop<13>(to, count);
  if (precision == Precision::kBf16 && dtype != ir::DType::kBf16) drop<16>(to, count);
  if (precision == Precision::kF16 && dtype != ir::DType::kF16) {
    uint16_t halves[64];
    for (int64_t i = 0; i < count; i += 64) {
      const int64_t here = std::min<int64_t>(64, count - i);
      f32_to_f16(to + i, halves, here);
      f16_to_f32(halves, to + i, here);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
