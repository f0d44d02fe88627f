// Elementwise ops, one pass over memory each. Blocks of a fixed number of elements; a view is walked in runs.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/elementwise/activation-inl.h"
#include "backends/cpu/kernels/operands.h"

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

/// run(x, y, n)
template <class F>
void unary(const KernelCall& call, ThreadPool& pool, F run) {
  const Walk<2> walk({&call.inputs[0], &call.outputs[0]});
  const float* x = call.inputs[0].as<const float>();
  float* y = call.outputs[0].as<float>();
  for_blocks(pool, walk.total(), kBlockElements, [&](int64_t begin, int64_t end) {
    walk.for_runs(begin, end, [&](const auto& at, int64_t n) { run(x + at[0], y + at[1], n); });
  });
}

/// run(a, b, y, n)
template <class F>
void binary(const KernelCall& call, ThreadPool& pool, F run) {
  const Walk<3> walk({&call.inputs[0], &call.inputs[1], &call.outputs[0]});
  const float *a = call.inputs[0].as<const float>(), *b = call.inputs[1].as<const float>();
  float* y = call.outputs[0].as<float>();
  for_blocks(pool, walk.total(), kBlockElements, [&](int64_t begin, int64_t end) {
    walk.for_runs(begin, end, [&](const auto& at, int64_t n) { run(a + at[0], b + at[1], y + at[2], n); });
  });
}

void add(const KernelCall& call, ThreadPool& pool) { binary(call, pool, &HWY_DYNAMIC_DISPATCH(add_run)); }
void mul(const KernelCall& call, ThreadPool& pool) { binary(call, pool, &HWY_DYNAMIC_DISPATCH(mul_run)); }
void silu(const KernelCall& call, ThreadPool& pool) { unary(call, pool, &HWY_DYNAMIC_DISPATCH(silu_run)); }
void silu_grad(const KernelCall& call, ThreadPool& pool) {
  binary(call, pool, &HWY_DYNAMIC_DISPATCH(silu_grad_run));
}
void gelu(const KernelCall& call, ThreadPool& pool) {
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  unary(call, pool, [form, run = &HWY_DYNAMIC_DISPATCH(gelu_run)](auto... at) { run(form, at...); });
}
void gelu_grad(const KernelCall& call, ThreadPool& pool) {
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  binary(call, pool, [form, run = &HWY_DYNAMIC_DISPATCH(gelu_grad_run)](auto... at) { run(form, at...); });
}

void scale(const KernelCall& call, ThreadPool& pool) {
  const Walk<2> walk({&call.inputs[0], &call.outputs[0]});
  const float* x = call.inputs[0].as<const float>();
  const float s = *call.inputs[1].as<const float>();
  float* y = call.outputs[0].as<float>();
  for_blocks(pool, walk.total(), kBlockElements, [&](int64_t begin, int64_t end) {
    walk.for_runs(begin, end, [&](const auto& at, int64_t n) {
      HWY_DYNAMIC_DISPATCH(scale_run)(x + at[0], s, y + at[1], n);
    });
  });
}

void bias_add(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<float>(call.outputs[0]);
  const float* bias = call.inputs[1].as<const float>();
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(add_run)(x.row(r), bias, y.row(r), x.cols);
  });
}

}  // namespace

std::span<const Kernel> elementwise_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add", .run = add, .strided_inputs = 0b11},
      {.op = "bias_add", .run = bias_add, .strided_inputs = 0b1},
      {.op = "gelu", .run = gelu, .strided_inputs = 0b1},
      {.op = "gelu_grad", .run = gelu_grad, .strided_inputs = 0b11},
      {.op = "mul", .run = mul, .strided_inputs = 0b11},
      {.op = "scale", .run = scale, .strided_inputs = 0b1},
      {.op = "silu", .run = silu, .strided_inputs = 0b1},
      {.op = "silu_grad", .run = silu_grad, .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
