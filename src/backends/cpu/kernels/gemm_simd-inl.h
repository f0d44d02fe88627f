// The vectors that the GEMM kernels are written in, per instruction set: Highway's where there is one, four
// lanes of the compiler's own for the portable build, where Highway under g++ 12 offers a single lane.
#include "hwy/highway.h"

#if defined(PLIMSOLL_GEMM_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_SIMD_INL_H_
#undef PLIMSOLL_GEMM_SIMD_INL_H_
#else
#define PLIMSOLL_GEMM_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// kRows and kVectors: the micro-tile. Its kRows * kVectors accumulators, kVectors of B and one of A fill the
// registers: 14 x 2 + 3 of 32 (AVX-512), 6 x 2 + 3 of 16 (AVX2), 4 x 2 + 4 of 16 (SSE2, which multiplies apart).
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

inline constexpr int kLanes = 4, kRows = 4, kVectors = 2;
using Vec = float __attribute__((vector_size(16)));

HWY_INLINE Vec zero() { return Vec{}; }
HWY_INLINE Vec broadcast(const float* p) { return Vec{*p, *p, *p, *p}; }
HWY_INLINE Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
HWY_INLINE void store(Vec v, float* p) { std::memcpy(p, &v, sizeof v); }
HWY_INLINE Vec load_first(const float* p, int64_t count) {
  Vec v{};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
HWY_INLINE void store_first(Vec v, float* p, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = v[i];
}
HWY_INLINE Vec add(Vec a, Vec b) { return a + b; }
HWY_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return a * b + c; }
HWY_INLINE void pin(Vec& v) { asm("" : "+x"(v)); }

// Four elements of each of kLanes rows, as kLanes elements of each of four columns.
HWY_INLINE void transpose4(const float* from, int64_t row_stride, float* to, int64_t to_stride) {
  for (int64_t p = 0; p < 4; ++p)
    for (int64_t j = 0; j < 4; ++j) to[p * to_stride + j] = from[j * row_stride + p];
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using Vec = hn::Vec<D>;
inline constexpr int kLanes = HWY_LANES(float), kVectors = 2, kRows = kLanes == 16 ? 12 : 6;

HWY_INLINE Vec zero() { return hn::Zero(D()); }
HWY_INLINE Vec broadcast(const float* p) { return hn::Set(D(), *p); }
HWY_INLINE Vec load(const float* p) { return hn::LoadU(D(), p); }
HWY_INLINE void store(Vec v, float* p) { hn::StoreU(v, D(), p); }
HWY_INLINE Vec load_first(const float* p, int64_t count) {
  return hn::MaskedLoad(hn::FirstN(D(), static_cast<size_t>(count)), D(), p);
}
HWY_INLINE void store_first(Vec v, float* p, int64_t count) {
  hn::BlendedStore(v, hn::FirstN(D(), static_cast<size_t>(count)), D(), p);
}
HWY_INLINE Vec add(Vec a, Vec b) { return hn::Add(a, b); }
HWY_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return hn::MulAdd(a, b, c); }
// The value is in a register here: keeps the compiler from renaming accumulators until it runs out of names.
HWY_INLINE void pin(Vec& v) { asm("" : "+v"(v.raw)); }

// Row q, q + 4, q + 8, q + 12: four elements of each, one 128-bit block per row.
HWY_INLINE Vec load_blocks(const float* from, int64_t row_stride) {
  const hn::Full128<float> d1;
  const hn::Full256<float> d2;
  const auto low = hn::Combine(d2, hn::LoadU(d1, from + 4 * row_stride), hn::LoadU(d1, from));
#if HWY_MAX_BYTES >= 64
  from += 8 * row_stride;
  return hn::Combine(D(), hn::Combine(d2, hn::LoadU(d1, from + 4 * row_stride), hn::LoadU(d1, from)), low);
#else
  return low;
#endif
}

// Four elements of each of kLanes rows, as kLanes elements of each of four columns: the blocks are in place
// after the loads, so a 4 x 4 transposition within each block is all that is left.
HWY_INLINE void transpose4(const float* from, int64_t row_stride, float* to, int64_t to_stride) {
  const D d;
  const hn::Repartition<double, D> d64;
  const Vec r0 = load_blocks(from, row_stride), r1 = load_blocks(from + row_stride, row_stride);
  const Vec r2 = load_blocks(from + 2 * row_stride, row_stride);
  const Vec r3 = load_blocks(from + 3 * row_stride, row_stride);
  const auto a = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1)), b = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1)), f = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
  store(hn::BitCast(d, hn::InterleaveLower(d64, a, b)), to);
  store(hn::BitCast(d, hn::InterleaveUpper(d64, a, b)), to + to_stride);
  store(hn::BitCast(d, hn::InterleaveLower(d64, e, f)), to + 2 * to_stride);
  store(hn::BitCast(d, hn::InterleaveUpper(d64, e, f)), to + 3 * to_stride);
}

#endif

inline constexpr int kColumns = kLanes * kVectors;

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
