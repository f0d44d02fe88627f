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

// kRows and kVectors: the micro-tile. Its kRows * kVectors sums, kVectors of B and one of A lie in registers:
// 8 x 3 + 4 of 32 (AVX-512), 4 x 3 + 4 of 16 (AVX2), 4 x 2 + 4 of 16 (SSE2, which multiplies apart). On
// AVX-512 8 x 3 reached 0.89 of the peak out of the second-level cache, 12 x 2 0.86 to 0.88, 14 x 2 0.84; A
// as panels rather than rows was worth 0.02 of it.
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
HWY_INLINE void multiply_add(Vec a, Vec b, Vec& sum) { sum = a * b + sum; }

// Four elements of each of kN rows, as kN elements of each of four columns.
template <int kN, class Rows>
HWY_INLINE void transpose4(const Rows& from, float* to, int64_t to_stride) {
  for (int64_t p = 0; p < 4; ++p)
    for (int j = 0; j < kN; ++j) to[p * to_stride + j] = from.row(j)[p];
}
template <int kN>
HWY_INLINE void copy(const float* from, float* to) {
  std::memcpy(to, from, kN * sizeof(float));
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using Vec = hn::Vec<D>;
inline constexpr int kLanes = HWY_LANES(float), kVectors = 3, kRows = kLanes / 2;

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
// Spelled out, for it pins the sum to its register: from the intrinsic g++ 12 renames 24 sums until it
// spills.
HWY_INLINE void multiply_add(Vec a, Vec b, Vec& sum) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
}

// Rows r, r + 4, r + 8, r + 12, as many as have a 128-bit block in the vector: four elements of each.
template <int kN, int kFirst, class Rows>
HWY_INLINE auto load_blocks(const Rows& from) {
  if constexpr (kN == 4) {
    return hn::LoadU(hn::FixedTag<float, 4>(), from.row(kFirst));
  } else {
    return hn::Combine(hn::FixedTag<float, kN>(), load_blocks<kN / 2, kFirst + kN / 2>(from),
                       load_blocks<kN / 2, kFirst>(from));
  }
}

// Four elements of each of kN rows, as kN elements of each of four columns: the blocks are in place after the
// loads, so a 4 x 4 transposition within each block is all that is left.
template <int kN, class Rows>
HWY_INLINE void transpose4(const Rows& from, float* to, int64_t to_stride) {
  const hn::FixedTag<float, kN> d;
  const hn::FixedTag<double, kN / 2> d64;
  const auto r0 = load_blocks<kN, 0>(from), r1 = load_blocks<kN, 1>(from), r2 = load_blocks<kN, 2>(from),
             r3 = load_blocks<kN, 3>(from);
  const auto a = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1)),
             b = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
  const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1)),
             f = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, a, b)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, e, f)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, e, f)), d, to + 3 * to_stride);
}
template <int kN>
HWY_INLINE void copy(const float* from, float* to) {
  const hn::FixedTag<float, kN> d;
  hn::StoreU(hn::LoadU(d, from), d, to);
}

#endif

inline constexpr int kColumns = kLanes * kVectors;

// Rows for transpose4: at one distance, or each where it lies.
struct SpacedRows {
  const float* data;
  int64_t stride;
  [[nodiscard]] HWY_INLINE const float* row(int r) const { return data + r * stride; }
};
struct ScatteredRows {
  const float* const* rows;
  int64_t column;
  [[nodiscard]] HWY_INLINE const float* row(int r) const { return rows[r] + column; }
};

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
