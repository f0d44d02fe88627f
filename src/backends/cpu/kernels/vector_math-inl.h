// Elementary functions on Highway vectors of f32, for every instruction set of targets.h.
//
// Each is a range reduction and a minimax polynomial (Remez exchange on the relative error, coefficients
// rounded to f32), without branches or tables; NaN, infinities and denormals come out as libm's do. The
// bounds stated are the largest found by the test over each function's range with fused multiply-add; the
// portable build, which rounds twice there, stays within one unit more.
//
// To be included after hwy/foreach_target.h, like any "-inl.h" of Highway; it is compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_VECTOR_MATH_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_VECTOR_MATH_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {

namespace vector_math {
namespace hn = hwy::HWY_NAMESPACE;

// 1.5 * 2^23: added to |v| < 2^22 it leaves round(v) in the low bits of the mantissa.
inline constexpr float kRoundMagic = 12582912.0f;
inline constexpr float kLog2E = 1.44269504f;
// ln 2 in two parts; the first has nine significant bits, so its product with an exponent is exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;

// c[0] + c[1] x + ... by Horner's rule.
template <class D, class V, size_t N>
HWY_INLINE V polynomial(D d, V x, const float (&c)[N]) {
  V y = hn::Set(d, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// x = n ln 2 + r with |r| <= ln 2 / 2.
template <class D, class V>
HWY_INLINE V reduce_by_ln2(D d, V x, V n) {
  return hn::NegMulAdd(n, hn::Set(d, kLn2Low), hn::NegMulAdd(n, hn::Set(d, kLn2High), x));
}

// exp on the reduced range, relative error 3.2e-9 before rounding.
template <class D, class V>
HWY_INLINE V exp_reduced(D d, V r) {
  constexpr float c[] = {1.0f,          1.0f,           0.49999994f,   0.166665167f,
                         0.0416681021f, 0.00836919155f, 0.00138387864f};
  return polynomial(d, r, c);
}

// 2^k from an integer k in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI k) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
}

}  // namespace vector_math

/// e^x. Error <= 1 ulp (denormal results: 1 ulp of the smallest denormal).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const hn::RebindToSigned<D> di;
  // Beyond these the result is 0 or infinity anyway. Compare and select, since min and max may drop a NaN.
  const V low = hn::Set(d, -104.0f), high = hn::Set(d, 89.0f);
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  const V magic = hn::Set(d, vm::kRoundMagic);
  const V shifted = hn::MulAdd(x, hn::Set(d, vm::kLog2E), magic);
  const V p = vm::exp_reduced(d, vm::reduce_by_ln2(d, x, hn::Sub(shifted, magic)));
  // In two factors, for n reaches from -150 to 128.
  const auto n = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic));
  const auto half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(p, vm::power_of_two(d, half)), vm::power_of_two(d, hn::Sub(n, half)));
}

/// e^x for x <= 0, results below the smallest normal number flushed to zero. Error <= 1 ulp. About a third
/// fewer instructions than Exp; for softmax, where the largest term is 1.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const hn::RebindToSigned<D> di;
  // The bias of the exponent rides on the magic number, so a shift alone makes 2^n.
  const V magic = hn::Set(d, vm::kRoundMagic + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, vm::kLog2E), magic);
  const V p = vm::exp_reduced(d, vm::reduce_by_ln2(d, x, hn::Sub(shifted, magic)));
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33f)), hn::Mul(p, scale));
}

/// 2^x for x <= 0 (or a little above), results below the smallest normal number flushed to zero. Error <= 2
/// ulp. For softmax in base 2, the cheapest of the exponentials: the reduction needs no multiplication.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Exp2NonPositive(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, vm::kRoundMagic + 127.0f);
  const V shifted = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(shifted, magic));
  // Relative error 1.05e-7; exact at 0, so that the largest term of a softmax is 1.
  constexpr float c[] = {1.0f, 0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151206f, 0.00132647366f};
  const V p = vm::polynomial(d, r, c);
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, scale));
}

/// Natural logarithm. Error <= 1 ulp; log(0) = -inf, log(x < 0) = NaN, denormals are exact inputs.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const hn::RebindToSigned<D> di;
  const V zero = hn::Zero(d);
  const V infinity = hn::BitCast(d, hn::Set(di, 0x7F800000));
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  const V bias = hn::IfThenElseZero(tiny, hn::Set(d, -23.0f));
  // scaled = m * 2^e with m in [sqrt(1/2), sqrt(2)): 0x3F3504F3 is sqrt(1/2).
  const auto bits = hn::BitCast(di, scaled);
  const auto e_int = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e_int)));
  const V e = hn::Add(hn::ConvertTo(d, e_int), bias);
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  // log(1 + f) = f - f^2/2 + f^3 P(f), relative error 6.2e-9.
  constexpr float c[] = {0.333333313f, -0.250008196f, 0.200012267f, -0.166233569f,
                         0.142017588f, -0.131601855f, 0.12761569f,  -0.0763447508f};
  const V f2 = hn::Mul(f, f);
  V y = hn::Mul(hn::Mul(f2, f), vm::polynomial(d, f, c));
  y = hn::MulAdd(e, hn::Set(d, vm::kLn2Low), y);
  y = hn::NegMulAdd(f2, hn::Set(d, 0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, vm::kLn2High), hn::Add(f, y));
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  const auto invalid = hn::Not(hn::Ge(x, zero));  // negative, or NaN
  return hn::IfThenElse(invalid, hn::BitCast(d, hn::Set(di, 0x7FC00000)), y);
}

/// 1 / (1 + e^-x). Error <= 2.5 ulp, also where the result is tiny (it does not round to 0 before e^x does).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0f);
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// Hyperbolic tangent. Error <= 3 ulp, relative for small x as well. With y = 2|x| = n ln 2 + r it is
/// expm1(y) / (expm1(y) + 2), expm1(y) = 2^n expm1(r) + (2^n - 1).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const hn::RebindToSigned<D> di;
  const V magnitude = hn::Abs(x), limit = hn::Set(d, 20.0f);
  V y = hn::Add(magnitude, magnitude);
  y = hn::IfThenElse(hn::Gt(y, limit), limit, y);
  const V magic = hn::Set(d, vm::kRoundMagic);
  const V shifted = hn::MulAdd(y, hn::Set(d, vm::kLog2E), magic);
  const V r = vm::reduce_by_ln2(d, y, hn::Sub(shifted, magic));
  // expm1(r) = r + r^2 P(r), relative error 1.4e-8.
  constexpr float c[] = {0.49999997f, 0.16666539f, 0.0416677482f, 0.00836708769f, 0.00138378621f};
  const V expm1_r = hn::MulAdd(hn::Mul(r, r), vm::polynomial(d, r, c), r);
  const V scale = vm::power_of_two(d, hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic)));
  const V expm1_y = hn::MulAdd(scale, expm1_r, hn::Sub(scale, hn::Set(d, 1.0f)));
  return hn::CopySign(hn::Div(expm1_y, hn::Add(expm1_y, hn::Set(d, 2.0f))), x);
}

/// Error function 2/sqrt(pi) * integral of e^(-t^2) from 0 to x. Error <= 2 ulp, relative for small x as
/// well.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  namespace vm = vector_math;
  const V magnitude = hn::Abs(x), limit = hn::Set(d, 3.95f);
  // Up to 0.9: x + x P(x^2).
  constexpr float inner[] = {0.128379166f,   -0.376126289f,    0.112836242f,   -0.02685556f,
                             0.00519175315f, -0.000803975272f, 7.94310035e-05f};
  const V near = hn::MulAdd(magnitude, vm::polynomial(d, hn::Mul(x, x), inner), magnitude);
  // Beyond: 1 - e^P(x), P fitted to log(erfc(x)); from 3.95 on erf rounds to 1.
  constexpr float outer[] = {0.000169207211f, -1.12948847f,    -0.633400857f,   -0.108220406f,
                             0.0250806324f,   -0.00415626122f, 0.000431394932f, -2.08287383e-05f};
  const V clamped = hn::IfThenElse(hn::Gt(magnitude, limit), limit, magnitude);
  const V far = hn::Sub(hn::Set(d, 1.0f), ExpNonPositive(d, vm::polynomial(d, clamped, outer)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.9f)), near, far), x);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
