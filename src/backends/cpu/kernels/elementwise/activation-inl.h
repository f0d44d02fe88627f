// Activation functions on one vector, shared by the plain and the fused kernels, with bit-identical results.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ACTIVATION_INL_H_
#endif

#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/gelu.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::activations {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::F32;
using vectors::set;
using vectors::V;

/// s = sigmoid(x) and q = 1 - s, neither by subtraction, so that both tails keep their relative precision.
struct Logistic {
  V s, q;
};
HWY_INLINE Logistic logistic(V x) {
  const V one = set(1.0f), e = Exp(F32(), hn::Neg(hn::Abs(x)));
  const V large = hn::Div(one, hn::Add(one, e)), small = hn::Mul(e, large);
  const auto negative = hn::Lt(x, hn::Zero(F32()));
  return {hn::IfThenElse(negative, small, large), hn::IfThenElse(negative, large, small)};
}

/// x * sigmoid(x).
HWY_INLINE V silu(V x, Logistic l) { return hn::Mul(x, l.s); }
/// dy * (s * (1 + x * (1 - s))).
HWY_INLINE V silu_grad(V dy, V x, Logistic l) {
  return hn::Mul(dy, hn::Mul(l.s, hn::MulAdd(x, l.q, set(1.0f))));
}

// 2 sqrt(2/pi), and the cubic's coefficient; what stands for both.
inline constexpr float kGeluScale = 1.59576912f, kGeluCubic = 0.044715f, kSigmoidScale = 1.702f;

/// x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): without the cancellation at negative
/// x.
struct GeluTanh {
  static HWY_INLINE Logistic part(V x, V x2) {
    const V inner = hn::Mul(x, hn::MulAdd(x2, set(kGeluCubic), set(1.0f)));
    return logistic(hn::Mul(inner, set(kGeluScale)));
  }
  static HWY_INLINE V value(V x) { return hn::Mul(x, part(x, hn::Mul(x, x)).s); }
  static HWY_INLINE V grad(V dy, V x) {
    const V x2 = hn::Mul(x, x);
    const Logistic l = part(x, x2);
    const V slope = hn::Mul(set(kGeluScale), hn::MulAdd(x2, set(3.0f * kGeluCubic), set(1.0f)));
    return hn::Mul(dy, hn::MulAdd(hn::Mul(hn::Mul(x, l.s), l.q), slope, l.s));
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

/// x sigmoid(1.702 x).
struct GeluSigmoid {
  static HWY_INLINE Logistic part(V x) { return logistic(hn::Mul(x, set(kSigmoidScale))); }
  static HWY_INLINE V value(V x) { return hn::Mul(x, part(x).s); }
  static HWY_INLINE V grad(V dy, V x) {
    const Logistic l = part(x);
    const V scaled = hn::Mul(hn::Mul(x, set(kSigmoidScale)), l.q);
    return hn::Mul(dy, hn::Mul(l.s, hn::Add(scaled, set(1.0f))));
  }
};

/// Calls f(a form), whose value and grad are that form's.
template <class F>
HWY_INLINE void with_gelu(ops::Gelu form, F f) {
  switch (form) {
    case ops::Gelu::kErf:
      return f(GeluErf());
    case ops::Gelu::kTanh:
      return f(GeluTanh());
    case ops::Gelu::kSigmoid:
      return f(GeluSigmoid());
  }
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::activations
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
