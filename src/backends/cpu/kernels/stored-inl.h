// Loads and stores of f32 vectors from memory that holds f32, bf16 or f16: what kernels over stored dtypes
// are written with. Rounds to nearest even; parts as in vectors-inl.h.
//
// To be included after hwy/foreach_target.h, like any "-inl.h" of Highway; it is compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_STORED_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_STORED_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_STORED_INL_H_
#endif

#include <cstdint>

#include "backends/cpu/kernels/vectors-inl.h"
#include "hwy/highway.h"
#include "ir/dtype.h"
#include "numerics/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::stored {

namespace convert = plimsoll::numerics::HWY_NAMESPACE;
using vectors::F32;
using vectors::Full;
using vectors::load;
using vectors::store;
using vectors::Tail;
using vectors::V;

/// Elements as they lie in memory.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

/// f(float() or Bf16() or F16()), by dtype.
template <class F>
HWY_INLINE void with_element(ir::DType dtype, F f) {
  if (dtype == ir::DType::kBf16)
    f(Bf16());
  else if (dtype == ir::DType::kF16)
    f(F16());
  else
    f(float());
}

/// Elements of a dtype that is known at run time alone; the branch is the same all along a row.
struct Any {
  std::byte* data;
  ir::DType dtype;
  HWY_INLINE Any operator+(int64_t elements) const {
    return {data + elements * (dtype == ir::DType::kF32 ? 4 : 2), dtype};
  }
};

HWY_INLINE V load(const Bf16* p, Full) { return convert::load_bf16(F32(), &p->bits); }
HWY_INLINE V load(const Bf16* p, Tail t) { return convert::load_bf16_n(F32(), &p->bits, t.count); }
HWY_INLINE V load(const F16* p, Full) { return convert::load_f16(F32(), &p->bits); }
HWY_INLINE V load(const F16* p, Tail t) { return convert::load_f16_n(F32(), &p->bits, t.count); }
HWY_INLINE void store(V v, Bf16* p, Full) { convert::store_bf16(v, F32(), &p->bits); }
HWY_INLINE void store(V v, Bf16* p, Tail t) { convert::store_bf16_n(v, F32(), &p->bits, t.count); }
HWY_INLINE void store(V v, F16* p, Full) { convert::store_f16(v, F32(), &p->bits); }
HWY_INLINE void store(V v, F16* p, Tail t) { convert::store_f16_n(v, F32(), &p->bits, t.count); }

template <class Part>
HWY_INLINE V load(Any p, Part part) {
  if (p.dtype == ir::DType::kF32) return load(reinterpret_cast<const float*>(p.data), part);
  if (p.dtype == ir::DType::kBf16) return load(reinterpret_cast<const Bf16*>(p.data), part);
  return load(reinterpret_cast<const F16*>(p.data), part);
}
template <class Part>
HWY_INLINE void store(V v, Any p, Part part) {
  if (p.dtype == ir::DType::kF32)
    store(v, reinterpret_cast<float*>(p.data), part);
  else if (p.dtype == ir::DType::kBf16)
    store(v, reinterpret_cast<Bf16*>(p.data), part);
  else
    store(v, reinterpret_cast<F16*>(p.data), part);
}

/// f32 lanes rounded to `dtype`, to nearest even; as they are where that is f32.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> rounded(D d, hwy::HWY_NAMESPACE::Vec<D> v, ir::DType dtype) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (dtype == ir::DType::kBf16) return hn::BitCast(d, hn::ShiftLeft<16>(convert::bf16_bits(d, v)));
  return dtype == ir::DType::kF16 ? convert::f16_from_bits(d, convert::f16_bits(d, v)) : v;
}

/// What a value that has just been stored reads as.
template <class Part>
HWY_INLINE V stored_value(V v, const float*, Part) {
  return v;
}
template <class Part>
HWY_INLINE V stored_value(V, Any p, Part part) {
  return load(p, part);
}

/// One element as f32.
HWY_INLINE float element(const float* p) { return *p; }
HWY_INLINE float element(Any p) { return hwy::HWY_NAMESPACE::GetLane(load(p, Tail{1})); }

}  // namespace plimsoll::cpu::HWY_NAMESPACE::stored
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
