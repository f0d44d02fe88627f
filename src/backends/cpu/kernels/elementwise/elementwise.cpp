// Elementwise ops, one pass over memory each. Blocks of a fixed number of elements; a view is walked in runs.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/elementwise/activation-inl.h"
#include "backends/cpu/kernels/elementwise/stored_runs.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/gelu.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace act = activations;
using vectors::for_vectors;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;

template <class F>
HWY_INLINE void map1(const float* x, float* y, int64_t n, F f) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR { store(f(load(x + i, part)), y + i, part); });
}
template <class F>
HWY_INLINE void map2(const float* a, const float* b, float* y, int64_t n, F f) {
  for_vectors(
      n, [=](int64_t i, auto part) HWY_ATTR { store(f(load(a + i, part), load(b + i, part)), y + i, part); });
}

void add_run(const float* a, const float* b, float* y, int64_t n) {
  map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
}
void mul_run(const float* a, const float* b, float* y, int64_t n) {
  map2(a, b, y, n, [](V u, V v) HWY_ATTR { return hn::Mul(u, v); });
}
void scale_run(const float* x, float s, float* y, int64_t n) {
  const V sv = set(s);
  map1(x, y, n, [sv](V v) HWY_ATTR { return hn::Mul(v, sv); });
}
void silu_run(const float* x, float* y, int64_t n) {
  map1(x, y, n, [](V v) HWY_ATTR { return act::silu(v, act::logistic(v)); });
}
void silu_grad_run(const float* dy, const float* x, float* dx, int64_t n) {
  map2(dy, x, dx, n, [](V d, V v) HWY_ATTR { return act::silu_grad(d, v, act::logistic(v)); });
}
void gelu_run(ops::Gelu form, const float* x, float* y, int64_t n) {
  act::with_gelu(form, [=](auto gelu) HWY_ATTR {
    map1(x, y, n, [](V v) HWY_ATTR { return decltype(gelu)::value(v); });
  });
}
void gelu_grad_run(ops::Gelu form, const float* dy, const float* x, float* dx, int64_t n) {
  act::with_gelu(form, [=](auto gelu) HWY_ATTR {
    map2(dy, x, dx, n, [](V d, V v) HWY_ATTR { return decltype(gelu)::grad(d, v); });
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(add_run);
HWY_EXPORT(mul_run);
HWY_EXPORT(scale_run);
HWY_EXPORT(silu_run);
HWY_EXPORT(silu_grad_run);
HWY_EXPORT(gelu_run);
HWY_EXPORT(gelu_grad_run);

/// run(x..., y, n)
template <size_t kInputs, class F>
void map(const KernelCall& call, ThreadPool& pool, F run) {
  const StoredRuns<kInputs> runs(call);
  for_blocks(pool, runs.total(), kBlockElements,
             [&](int64_t begin, int64_t end) { runs.for_runs(begin, end, run); });
}

void add(const KernelCall& call, ThreadPool& pool) { map<2>(call, pool, &HWY_DYNAMIC_DISPATCH(add_run)); }
void mul(const KernelCall& call, ThreadPool& pool) { map<2>(call, pool, &HWY_DYNAMIC_DISPATCH(mul_run)); }
void silu(const KernelCall& call, ThreadPool& pool) { map<1>(call, pool, &HWY_DYNAMIC_DISPATCH(silu_run)); }
void silu_grad(const KernelCall& call, ThreadPool& pool) {
  map<2>(call, pool, &HWY_DYNAMIC_DISPATCH(silu_grad_run));
}
void gelu(const KernelCall& call, ThreadPool& pool) {
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  map<1>(call, pool, [form, run = &HWY_DYNAMIC_DISPATCH(gelu_run)](auto... at) { run(form, at...); });
}
void gelu_grad(const KernelCall& call, ThreadPool& pool) {
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  map<2>(call, pool, [form, run = &HWY_DYNAMIC_DISPATCH(gelu_grad_run)](auto... at) { run(form, at...); });
}

void scale(const KernelCall& call, ThreadPool& pool) {
  const float s = *call.inputs[1].as<const float>();
  map<1>(call, pool, [s, run = &HWY_DYNAMIC_DISPATCH(scale_run)](const float* x, float* y, int64_t n) {
    run(x, s, y, n);
  });
}

void bias_add(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &x = call.inputs[0], &bias = call.inputs[1], &y = call.outputs[0];
  const ir::DType dtype = x.type.dtype;
  const RowsOfAny from(x), to(y), columns(bias);
  const auto add_part = [&](int64_t row, int64_t j, int64_t n) {
    alignas(64) std::array<std::array<float, kWidenedElements>, 3> wide;
    float* const sum = as_f32(to.row(row, j), dtype, 0, wide[2].data());
    HWY_DYNAMIC_DISPATCH(add_run)
    (as_f32(from.row(row, j), dtype, n, wide[0].data()),
     as_f32(columns.row(0, j), bias.type.dtype, n, wide[1].data()), sum, n);
    if (dtype != ir::DType::kF32) round_to(sum, to.row(row, j), dtype, n);
  };
  for_row_blocks(pool, from.rows(), from.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < from.cols(); j += kWidenedElements)
        add_part(r, j, std::min(kWidenedElements, from.cols() - j));
  });
}

}  // namespace

std::span<const Kernel> elementwise_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add", .run = add, .strided_inputs = 0b11, .stored_dtypes = true},
      {.op = "bias_add", .run = bias_add, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "gelu", .run = gelu, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "gelu_grad", .run = gelu_grad, .strided_inputs = 0b11, .stored_dtypes = true},
      {.op = "mul", .run = mul, .strided_inputs = 0b11, .stored_dtypes = true},
      {.op = "scale", .run = scale, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "silu", .run = silu, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "silu_grad", .run = silu_grad, .strided_inputs = 0b11, .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
