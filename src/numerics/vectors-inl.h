// Arrays of f32 to codes and back, as many vectors at a time as give one of codes. What a vector becomes is
// the caller's: f(v, i) gives the codes of elements i, i + 1, ..., f(codes, i) the numbers.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_VECTORS_INL_H_
#undef PLIMSOLL_NUMERICS_VECTORS_INL_H_
#else
#define PLIMSOLL_NUMERICS_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "numerics/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
constexpr size_t kLanes = HWY_LANES(float);
static_assert(kLanes == 1 || kLanes == 8 || kLanes == 16);

/// The last numbers, fewer than fill a vector of codes; what lies beyond them counts as 0 and is not stored.
/// The unused half of a last byte is 0.
template <class Stored, class F>
HWY_INLINE void encode_rest(const float* x, size_t n, std::byte* to, size_t at, F f) {
  constexpr size_t kStep = kJoined<Stored> * kLanes, kBits = kStoredBits<Stored>;
  HWY_ALIGN float rest[kStep] = {};
  HWY_ALIGN std::byte bytes[kStep * kBits / 8];
  using Codes = decltype(f(V(), at));
  const hn::DFromV<Codes> d;
  HWY_ALIGN hn::TFromV<Codes> lanes[kStep] = {};
  std::memcpy(rest, x, n * sizeof(float));
  for (size_t i = 0; i < n; i += kLanes) hn::Store(f(hn::Load(F32(), rest + i), at + i), d, lanes + i);
  Codes codes[kJoined<Stored>];
  for (size_t k = 0; k < kJoined<Stored>; ++k) codes[k] = hn::Load(d, lanes + k * kLanes);
  store_codes<Stored, false>(codes, bytes);
  if (kBits == 4 && n % 2 != 0) bytes[n / 2] &= std::byte{0xF};
  std::memcpy(to, bytes, (n * kBits + 7) / 8);
}

/// Codes of n numbers; kStream: past the caches, `to` being aligned to a vector; kAhead: x is read ahead.
template <class Stored, bool kStream, bool kAhead = kStream, class F>
HWY_INLINE void encode_vectors(const float* x, size_t n, std::byte* to, F f) {
  constexpr size_t kStep = kJoined<Stored> * kLanes, kBits = kStoredBits<Stored>;
  constexpr size_t kLine = HWY_MAX(1, 64 / (kLanes * sizeof(float)));  // vectors of a cache line
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    decltype(f(V(), i)) codes[kJoined<Stored>];
    HWY_UNROLL(8)  // so that codes stay in registers
    for (size_t k = 0; k < kJoined<Stored>; ++k) {
      const size_t at = i + k * kLanes;
      if (kAhead && k % kLine == 0) read_ahead(x + at);
      codes[k] = f(hn::LoadU(F32(), x + at), at);
    }
    store_codes<Stored, kStream>(codes, to + i * kBits / 8);
  }
  if (i < n) encode_rest<Stored>(x + i, n - i, to + i * kBits / 8, i, f);
}

/// The numbers of n codes; kStream: past the caches, x being aligned to a vector.
template <class Stored, bool kStream, class F>
HWY_INLINE void decode_vectors(const std::byte* from, size_t n, float* x, F f) {
  constexpr size_t kBits = kStoredBits<Stored>;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V numbers = f(load_codes<Stored>(from, i), i);
    if constexpr (kStream)
      hn::Stream(numbers, F32(), x + i);
    else
      hn::StoreU(numbers, F32(), x + i);
  }
  if (i == n) return;
  HWY_ALIGN std::byte rest[kLanes * sizeof(uint32_t)] = {};
  HWY_ALIGN float values[kLanes];
  std::memcpy(rest, from + i * kBits / 8, ((n - i) * kBits + 7) / 8);
  hn::Store(f(load_codes<Stored>(rest, 0), i), F32(), values);
  std::memcpy(x + i, values, (n - i) * sizeof(float));
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
