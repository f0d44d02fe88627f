// One row of each normalisation, forward and backward. The fused ops differ from the plain ones only in where
// a row's elements come from, so both run the same code on the same values: a sum is normed as it is stored.
// Rows are float pointers, or stored::Any where an operand of the op is bf16 or f16.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ROWS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ROWS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_NORM_ROWS_INL_H_
#endif

#include <cmath>

#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::norms {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using vectors::for_vectors;
using vectors::set;
using vectors::sum_of;
using vectors::V;

// The elements of a row as they lie.
template <class Row>
struct PlainRow {
  Row x;
  template <class Part>
  HWY_INLINE V operator()(int64_t i, Part part) const {
    return load(x + i, part);
  }
};
// x + residual, kept in `sum` at the first reading.
template <class Row>
struct SummedRow {
  Row x, residual, sum;
  template <class Part>
  HWY_INLINE V operator()(int64_t i, Part part) const {
    const V s = hn::Add(load(x + i, part), load(residual + i, part));
    store(s, sum + i, part);
    return stored::stored_value(s, sum + i, part);
  }
};

// y = (x * rstd) * weight. `first` reads the row for the first time, afterwards it lies in x.
template <class First, class X, class W, class Y>
HWY_INLINE float rms_norm_row(First first, X x, W weight, Y y, int64_t n, float eps) {
  const float squares = sum_of(n, [=](int64_t i, auto part) HWY_ATTR {
    const V v = first(i, part);
    return hn::Mul(v, v);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  const V r = set(rstd);
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(hn::Mul(hn::Mul(load(x + i, part), r), load(weight + i, part)), y + i, part);
  });
  return rstd;
}

struct Moments {
  float mean, rstd;
};

// y = ((x - mean) * rstd) * weight + bias; the variance from the differences.
template <class First, class X, class W, class Y>
HWY_INLINE Moments layer_norm_row(First first, X x, W weight, W bias, Y y, int64_t n, float eps) {
  const float mean =
      sum_of(n, [=](int64_t i, auto part) HWY_ATTR { return first(i, part); }) / static_cast<float>(n);
  const V m = set(mean);
  int64_t whole = n / vectors::kWidth * vectors::kWidth;
  float squares = sum_of(whole, [=](int64_t i, auto part) HWY_ATTR {
    const V v = hn::Sub(load(x + i, part), m);
    return hn::Mul(v, v);
  });
  for (; whole < n; ++whole) {
    const float difference = stored::element(x + whole) - mean;
    squares += difference * difference;
  }
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  const V r = set(rstd);
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V xhat = hn::Mul(hn::Sub(load(x + i, part), m), r);
    store(hn::Add(hn::Mul(xhat, load(weight + i, part)), load(bias + i, part)), y + i, part);
  });
  return {mean, rstd};
}

// What becomes of dx: stored, or added to the residual's gradient. The value that is stored.
template <class Row>
struct StoreDx {
  Row dx;
  template <class Part>
  HWY_INLINE V operator()(V v, int64_t i, Part part) const {
    store(v, dx + i, part);
    return v;
  }
};
template <class Row>
struct AddDx {
  Row residual, dx;
  template <class Part>
  HWY_INLINE V operator()(V v, int64_t i, Part part) const {
    const V sum = hn::Add(load(residual + i, part), v);
    store(sum, dx + i, part);
    return sum;
  }
};
// And once more, rounded to the dtype of `copy`.
template <class Out>
struct CopyDx {
  Out out;
  stored::Any copy;
  template <class Part>
  HWY_INLINE void operator()(V v, int64_t i, Part part) const {
    store(out(v, i, part), copy + i, part);
  }
};

// dx = rstd * (dy*weight - xhat*c), c = mean(dy*weight*xhat); dw += dy*xhat.
template <class Dy, class X, class W, class Out>
HWY_INLINE void rms_norm_grad_row(Dy dy, X x, W weight, float rstd, Out out, float* dw, int64_t n) {
  const V r = set(rstd);
  const V c = set(sum_of(n,
                         [=](int64_t i, auto part) HWY_ATTR {
                           return hn::Mul(hn::Mul(load(dy + i, part), load(weight + i, part)),
                                          hn::Mul(load(x + i, part), r));
                         }) /
                  static_cast<float>(n));
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V d = load(dy + i, part), xhat = hn::Mul(load(x + i, part), r);
    store(hn::MulAdd(d, xhat, load(dw + i, part)), dw + i, part);
    out(hn::Mul(r, hn::NegMulAdd(xhat, c, hn::Mul(d, load(weight + i, part)))), i, part);
  });
}

// dx = rstd * (g - mean(g) - xhat*mean(g*xhat)), g = dy*weight; dw += dy*xhat; db += dy.
template <class Row, class Out>
HWY_INLINE void layer_norm_grad_row(Row dy, Row x, Row weight, Moments moments, Out out, float* dw, float* db,
                                    int64_t n) {
  const V m = set(moments.mean), r = set(moments.rstd);
  const float count = static_cast<float>(n);
  const V mean_g =
      set(sum_of(n, [=](int64_t i, auto part)
                        HWY_ATTR { return hn::Mul(load(dy + i, part), load(weight + i, part)); }) /
          count);
  const V c = set(sum_of(n,
                         [=](int64_t i, auto part) HWY_ATTR {
                           const V xhat = hn::Mul(hn::Sub(load(x + i, part), m), r);
                           return hn::Mul(hn::Mul(load(dy + i, part), load(weight + i, part)), xhat);
                         }) /
                  count);
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V d = load(dy + i, part), xhat = hn::Mul(hn::Sub(load(x + i, part), m), r);
    store(hn::MulAdd(d, xhat, load(dw + i, part)), dw + i, part);
    store(hn::Add(d, load(db + i, part)), db + i, part);
    const V g = hn::Sub(hn::Mul(d, load(weight + i, part)), mean_g);
    out(hn::Mul(r, hn::NegMulAdd(xhat, c, g)), i, part);
  });
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::norms
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
