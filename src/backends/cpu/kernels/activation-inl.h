// Activation functions on one vector, shared by the plain and the fused kernels: so both give the same bits.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#endif

#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::activations {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::F32;
using vectors::set;
using vectors::V;

/// x * s, with s = sigmoid(x).
HWY_INLINE V silu(V x, V s) { return hn::Mul(x, s); }
/// dy * (s * (1 + x * (1 - s))).
HWY_INLINE V silu_grad(V dy, V x, V s) {
  const V one = set(1.0f);
  return hn::Mul(dy, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
}

// sqrt(2/pi), and the cubic's coefficient.
inline constexpr float kGeluScale = 0.797884561f, kGeluCubic = 0.044715f;

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct GeluTanh {
  static HWY_INLINE V tanh_part(V x, V x2) {
    const V inner = hn::Mul(x, hn::MulAdd(x2, set(kGeluCubic), set(1.0f)));
    return Tanh(F32(), hn::Mul(inner, set(kGeluScale)));
  }
  static HWY_INLINE V value(V x) {
    const V half = hn::Mul(x, set(0.5f));
    return hn::MulAdd(half, tanh_part(x, hn::Mul(x, x)), half);
  }
  static HWY_INLINE V grad(V dy, V x) {
    const V x2 = hn::Mul(x, x), t = tanh_part(x, x2), half = set(0.5f);
    const V slope = hn::Mul(set(kGeluScale), hn::MulAdd(x2, set(3.0f * kGeluCubic), set(1.0f)));
    const V sech2 = hn::NegMulAdd(t, t, set(1.0f));
    const V bent = hn::Mul(hn::Mul(hn::Mul(half, x), sech2), slope);
    return hn::Mul(dy, hn::Add(hn::MulAdd(half, t, half), bent));
  }
};

/// x/2 (1 + erf(x / sqrt 2)).
struct GeluErf {
  static HWY_INLINE V erf_part(V x) { return Erf(F32(), hn::Mul(x, set(0.707106769f))); }
  static HWY_INLINE V value(V x) {
    const V half = hn::Mul(x, set(0.5f));
    return hn::MulAdd(half, erf_part(x), half);
  }
  static HWY_INLINE V grad(V dy, V x) {
    const V half = set(0.5f);
    const V density = hn::Mul(Exp(F32(), hn::Mul(hn::Mul(x, x), set(-0.5f))), set(0.398942292f));
    return hn::Mul(dy, hn::MulAdd(x, density, hn::MulAdd(half, erf_part(x), half)));
  }
};

}  // namespace plimsoll::cpu::HWY_NAMESPACE::activations
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
