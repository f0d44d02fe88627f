// The turn of heads that lie side by side; what rope, rope_packed and qk_norm_rope share, so that their bits
// agree. Compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ROPE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ROPE_ROWS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ROPE_ROWS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ROPE_ROWS_INL_H_
#endif

#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::ropes {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using vectors::for_vectors;
using vectors::V;

// Heads of 2 * half elements, their halves turned by the angles of table [half cosines, half sines]. x may be
// y.
template <bool kInverse, class T>
HWY_INLINE void rotate(const T* x, const float* table, T* y, int64_t heads, int64_t half) {
  for (int64_t h = 0; h < heads; ++h, x += 2 * half, y += 2 * half) {
    for_vectors(half, [=](int64_t i, auto part) HWY_ATTR {
      const V a = load(x + i, part), c = load(x + half + i, part);
      const V cos = load(table + i, part), sin = load(table + half + i, part);
      const V a_sin = hn::Mul(a, sin), c_sin = hn::Mul(c, sin);
      store(kInverse ? hn::MulAdd(a, cos, c_sin) : hn::MulSub(a, cos, c_sin), y + i, part);
      store(kInverse ? hn::MulSub(c, cos, a_sin) : hn::MulAdd(c, cos, a_sin), y + half + i, part);
    });
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::ropes
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
