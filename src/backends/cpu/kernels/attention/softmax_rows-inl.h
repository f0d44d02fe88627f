// One row of logits: log-sum-exp and the loss's gradient, shared by cross_entropy and head_loss.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_SOFTMAX_ROWS_INL_H_
#endif

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::softmax {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::F32;
using vectors::Full;
using vectors::load;
using vectors::set;
using vectors::Tail;
using vectors::V;

// Minus infinity beyond the end: no maximum, and nothing to a sum of exponentials.
HWY_INLINE V load_or_lowest(const float* p, Full part) { return load(p, part); }
HWY_INLINE V load_or_lowest(const float* p, Tail part) {
  const auto lowest = set(-std::numeric_limits<float>::infinity());
  return hn::IfThenElse(hn::FirstN(F32(), part.count), load(p, part), lowest);
}

HWY_INLINE float row_max(const float* x, int64_t n) {
  V a = set(-std::numeric_limits<float>::infinity()), b = a;
  int64_t i = 0;
  for (; i + 2 * vectors::kWidth <= n; i += 2 * vectors::kWidth) {
    a = hn::Max(a, load(x + i, Full{}));
    b = hn::Max(b, load(x + i + vectors::kWidth, Full{}));
  }
  for (; i + vectors::kWidth <= n; i += vectors::kWidth) a = hn::Max(a, load(x + i, Full{}));
  if (i < n) b = hn::Max(b, load_or_lowest(x + i, Tail{static_cast<size_t>(n - i)}));
  return hn::GetLane(hn::MaxOfLanes(F32(), hn::Max(a, b)));
}

/// ln of the sum of e^x.
HWY_INLINE float row_lse(const float* x, int64_t n) {
  const float highest = row_max(x, n);
  const V h = set(highest);
  const float sum = vectors::sum_of(n, [=](int64_t i, auto part) HWY_ATTR {
    return ExpNonPositive(F32(), hn::Sub(load_or_lowest(x + i, part), h));
  });
  return highest + std::log(sum);
}

/// d = (softmax(x) - onehot(target)) * scale in elements of `To` (stored-inl.h); d may begin where x does.
template <class To>
HWY_INLINE void row_grad(const float* x, float lse, int32_t target, float scale, To* d, int64_t n) {
  const V l = set(lse), s = set(scale);
  const float at_target = hn::GetLane(ExpNonPositive(F32(), hn::Sub(set(x[target]), l)));
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    stored::store(hn::Mul(ExpNonPositive(F32(), hn::Sub(load(x + i, part), l)), s), d + i, part);
  });
  stored::store(set((at_target - 1.0f) * scale), d + target, Tail{1});
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::softmax
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
