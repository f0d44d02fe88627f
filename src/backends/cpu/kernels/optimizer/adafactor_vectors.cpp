// Adafactor over rows of f32, in vectors.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/adafactor_vectors.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/optimizer/adafactor_vectors.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/tensor_rules.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;

// Adds the squares of g to `columns`; returns their sum.
float add_squares(const float* g, float* columns, int64_t n) {
  return vectors::sum_of(n, [&](int64_t i, auto part) HWY_ATTR {
    const V x = load(g + i, part), square = hn::Mul(x, x);
    store(hn::Add(load(columns + i, part), square), columns + i, part);
    return square;
  });
}

float sum_of_squares(const float* x, int64_t n) {
  return vectors::sum_of(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = load(x + i, part);
    return hn::Mul(v, v);
  });
}

// The squares' sum of g * factors.
float sum_of_scaled(const float* g, const float* factors, int64_t n) {
  return vectors::sum_of(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = hn::Mul(load(g + i, part), load(factors + i, part));
    return hn::Mul(v, v);
  });
}

// g = g * factors * factor.
void scale(float* g, const float* factors, float factor, int64_t n) {
  const V f = set(factor);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(hn::Mul(load(g + i, part), load(factors + i, part)), f), g + i, part);
  });
}

// moment = moment * beta2 + one_minus * (sums * share + eps); factors = 1 / sqrt(moment).
void next_moment(float* moment, const float* before, const float* sums, float share, const float* group,
                 float* factors, int64_t n) {
  const V beta2 = set(group[ops::kAdafactorBeta2]), rest = set(group[ops::kAdafactorOneMinusBeta2]);
  const V eps = set(group[ops::kAdafactorEpsilon1]), part_of = set(share), one = set(1.0F);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V mean = hn::MulAdd(load(sums + i, part), part_of, eps);
    const V next = hn::MulAdd(load(before + i, part), beta2, hn::Mul(rest, mean));
    store(next, moment + i, part);
    store(hn::Div(one, hn::Sqrt(next)), factors + i, part);
  });
}

void square(const float* g, float* squares, int64_t n) {
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = load(g + i, part);
    store(hn::Mul(v, v), squares + i, part);
  });
}

void inverse_root(const float* x, float* factors, int64_t n) {
  const V one = set(1.0F);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    store(hn::Div(one, hn::Sqrt(load(x + i, part))), factors + i, part);
  });
}

void add(const float* x, float* sum, int64_t n) {
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    store(hn::Add(load(sum + i, part), load(x + i, part)), sum + i, part);
  });
}

// The first moment takes the steps in; they become its new values.
void take_in(const float* moment, float beta1, float rest, float* step, int64_t n) {
  const V keep = set(beta1), take = set(rest);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    store(hn::MulAdd(load(moment + i, part), keep, hn::Mul(take, load(step + i, part))), step + i, part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(add);
HWY_EXPORT(add_squares);
HWY_EXPORT(inverse_root);
HWY_EXPORT(next_moment);
HWY_EXPORT(scale);
HWY_EXPORT(square);
HWY_EXPORT(sum_of_scaled);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(take_in);

}  // namespace

namespace adafactor_vectors {

void add(const float* x, float* sum, int64_t n) { HWY_DYNAMIC_DISPATCH(add)(x, sum, n); }
float add_squares(const float* g, float* columns, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(add_squares)(g, columns, n);
}
void inverse_root(const float* x, float* factors, int64_t n) {
  HWY_DYNAMIC_DISPATCH(inverse_root)(x, factors, n);
}
void next_moment(float* moment, const float* before, const float* sums, float share, const float* group,
                 float* factors, int64_t n) {
  HWY_DYNAMIC_DISPATCH(next_moment)(moment, before, sums, share, group, factors, n);
}
void scale(float* g, const float* factors, float factor, int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale)(g, factors, factor, n);
}
void square(const float* g, float* squares, int64_t n) { HWY_DYNAMIC_DISPATCH(square)(g, squares, n); }
float sum_of_scaled(const float* g, const float* factors, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_scaled)(g, factors, n);
}
float sum_of_squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, n); }
void take_in(const float* moment, float beta1, float rest, float* step, int64_t n) {
  HWY_DYNAMIC_DISPATCH(take_in)(moment, beta1, rest, step, n);
}

}  // namespace adafactor_vectors
}  // namespace plimsoll::cpu
#endif
