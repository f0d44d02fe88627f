// The functions of expressions on vectors, a loop each.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_POINTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_POINTWISE_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_POINTWISE_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_POINTWISE_INL_H_
#endif

#include <cmath>

#include "backends/cpu/kernels/elementwise/activation-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/expression.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::pointwise_steps {

namespace hn = hwy::HWY_NAMESPACE;
using ops::Function;
using vectors::F32;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;
using vectors::zero;

/// 1 where the mask is set, else 0.
template <class M>
HWY_INLINE V one_if(M mask) {
  return hn::IfThenElseZero(mask, set(1.0F));
}
HWY_INLINE V larger(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
HWY_INLINE V smaller(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }

/// max(x, 0) + log(1 + e), e = exp(-|x|); what 1 + e loses of e is added.
HWY_INLINE V softplus(V x) {
  const V one = set(1.0F), e = Exp(F32(), hn::Neg(hn::Abs(x)));
  const V sum = hn::Add(one, e), lost = hn::Sub(e, hn::Sub(sum, one));
  return hn::Add(larger(x, zero()), hn::Add(Log(F32(), sum), hn::Div(lost, sum)));
}

/// exp(b log|a|), the rounding of that product made good; signs by b's parity, as C's pow.
HWY_INLINE V power(V a, V b) {
  const V one = set(1.0F), logarithm = Log(F32(), hn::Abs(a)), product = hn::Mul(b, logarithm);
  const auto is_ordinary = hn::Lt(hn::Abs(product), set(88.0F));
  const V lost = hn::IfThenElseZero(is_ordinary, hn::MulSub(b, logarithm, product));
  const V magnitude = Exp(F32(), product);
  V y = hn::IfThenElse(is_ordinary, hn::MulAdd(magnitude, lost, magnitude), magnitude);
  const V half = hn::Mul(b, set(0.5F));
  const auto is_whole = hn::Eq(hn::Round(b), b), is_even = hn::Eq(hn::Round(half), half);
  const V of_negative = hn::IfThenElse(is_whole, hn::IfThenElse(is_even, y, hn::Neg(y)), set(NAN));
  y = hn::IfThenElse(hn::Lt(a, zero()), of_negative, y);
  return hn::IfThenElse(hn::Or(hn::Eq(b, zero()), hn::Eq(a, one)), one, y);
}

template <class F>
HWY_INLINE void map1(const float* a, float* y, int64_t n, F f) {
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR { store(f(load(a + i, part)), y + i, part); });
}
template <class F>
HWY_INLINE void map2(const float* a, const float* b, float* y, int64_t n, F f) {
  vectors::for_vectors(
      n, [=](int64_t i, auto part) HWY_ATTR { store(f(load(a + i, part), load(b + i, part)), y + i, part); });
}
template <class F>
HWY_INLINE void map3(const float* a, const float* b, const float* c, float* y, int64_t n, F f) {
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(f(load(a + i, part), load(b + i, part), load(c + i, part)), y + i, part);
  });
}

HWY_INLINE void run_one(Function function, const float* a, float* y, int64_t n) {
  using enum Function;
  switch (function) {
    case kNeg:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::Neg(x); });
    case kAbs:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::Abs(x); });
    case kSign:
      return map1(a, y, n,
                  [](V x) HWY_ATTR { return hn::Sub(one_if(hn::Gt(x, zero())), one_if(hn::Lt(x, zero()))); });
    case kSqrt:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::Sqrt(x); });
    case kRsqrt:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::Div(set(1.0F), hn::Sqrt(x)); });
    case kExp:
      return map1(a, y, n, [](V x) HWY_ATTR { return Exp(F32(), x); });
    case kLog:
      return map1(a, y, n, [](V x) HWY_ATTR { return Log(F32(), x); });
    case kTanh:
      return map1(a, y, n, [](V x) HWY_ATTR { return Tanh(F32(), x); });
    case kSigmoid:
      return map1(a, y, n, [](V x) HWY_ATTR { return activations::logistic(x).s; });
    case kSoftplus:
      return map1(a, y, n, [](V x) HWY_ATTR { return softplus(x); });
    case kErf:
      return map1(a, y, n, [](V x) HWY_ATTR { return Erf(F32(), x); });
    case kRelu:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(x, zero()), x); });
    default:
      return map1(a, y, n, [](V x) HWY_ATTR { return x; });
  }
}

HWY_INLINE void run_two(Function function, const float* a, const float* b, float* y, int64_t n) {
  using enum Function;
  switch (function) {
    case kAdd:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
    case kSub:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Sub(u, v); });
    case kMul:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Mul(u, v); });
    case kDiv:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Div(u, v); });
    case kPow:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return power(u, v); });
    case kMax:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return larger(u, v); });
    case kMin:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return smaller(u, v); });
    case kLt:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Lt(u, v)); });
    case kLe:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Le(u, v)); });
    case kGt:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Gt(u, v)); });
    case kGe:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Ge(u, v)); });
    case kEq:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Eq(u, v)); });
    default:
      return map2(a, b, y, n, [](V u, V v) HWY_ATTR { return one_if(hn::Ne(u, v)); });
  }
}

/// y = function(a, b, c) for n elements; y may be one of them.
HWY_INLINE void run(Function function, const float* a, const float* b, const float* c, float* y, int64_t n) {
  if (function == Function::kWhere)
    map3(a, b, c, y, n, [](V u, V v, V w) HWY_ATTR { return hn::IfThenElse(hn::Ne(u, zero()), v, w); });
  else if (function == Function::kClamp)
    map3(a, b, c, y, n, [](V x, V low, V high) HWY_ATTR {
      return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
    });
  else if (ops::info(function).arity == 2)
    run_two(function, a, b, y, n);
  else
    run_one(function, a, y, n);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::pointwise_steps
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
