// Loops over contiguous f32 in vectors of whatever width the target has, with tails that touch nothing beyond
// the end, and sums in one fixed order. A functor gets the index and a "part": Full, or Tail with the
// elements left.
//
// To be included after hwy/foreach_target.h, like any "-inl.h" of Highway; it is compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_VECTORS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_VECTORS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::vectors {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
inline constexpr int64_t kWidth = static_cast<int64_t>(HWY_LANES(float));

struct Full {};
struct Tail {
  size_t count;
};

HWY_INLINE V load(const float* p, Full) { return hn::LoadU(F32(), p); }
HWY_INLINE void store(V v, float* p, Full) { hn::StoreU(v, F32(), p); }
/// Zeros stand beyond the end.
HWY_INLINE V load(const float* p, Tail t) { return hn::MaskedLoad(hn::FirstN(F32(), t.count), F32(), p); }
HWY_INLINE void store(V v, float* p, Tail t) { hn::BlendedStore(v, hn::FirstN(F32(), t.count), F32(), p); }
HWY_INLINE V set(float x) { return hn::Set(F32(), x); }
HWY_INLINE V zero() { return hn::Zero(F32()); }

/// f(i, part) for i = 0, width, 2 width, ... below n.
template <class F>
HWY_INLINE void for_vectors(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) f(i, Full{});
  if (i < n) f(i, Tail{static_cast<size_t>(n - i)});
}

/// The sum of f(i, part) over all elements: four accumulators in turn, then a fixed tree. f must give zeros
/// beyond the end.
template <class F>
HWY_INLINE float sum_of(int64_t n, F f) {
  V a = zero(), b = zero(), c = zero(), e = zero();
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    a = hn::Add(a, f(i, Full{}));
    b = hn::Add(b, f(i + kWidth, Full{}));
    c = hn::Add(c, f(i + 2 * kWidth, Full{}));
    e = hn::Add(e, f(i + 3 * kWidth, Full{}));
  }
  for (; i + kWidth <= n; i += kWidth) a = hn::Add(a, f(i, Full{}));
  if (i < n) b = hn::Add(b, f(i, Tail{static_cast<size_t>(n - i)}));
  return hn::GetLane(hn::SumOfLanes(F32(), hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::vectors
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
