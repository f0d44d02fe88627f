// Fused activations: one pass over memory where the plain ops take three to five, from the same vector
// functions.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/activation.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/elementwise/activation-inl.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "ops/gelu.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace act = activations;
using stored::load;
using stored::store;
using vectors::for_vectors;
using vectors::V;

// gate [n], up [n] -> silu(gate) * up.
template <class T>
HWY_INLINE void swiglu_of(const T* gate, const T* up, T* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V g = load(gate + i, part);
    store(hn::Mul(act::silu(g, act::logistic(g)), load(up + i, part)), y + i, part);
  });
}

template <class T>
HWY_INLINE void swiglu_grad_of(const T* dy, const T* gate, const T* up, T* d_gate, T* d_up, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V d = load(dy + i, part), g = load(gate + i, part), u = load(up + i, part);
    const act::Logistic s = act::logistic(g);
    store(act::silu_grad(hn::Mul(d, u), g, s), d_gate + i, part);
    store(hn::Mul(d, act::silu(g, s)), d_up + i, part);
  });
}

// All of one dtype; `x` a row of gate and up.
void swiglu_row(ir::DType dtype, const void* x, void* y, int64_t n) {
  stored::with_element(dtype, [=](auto element) HWY_ATTR {
    using T = decltype(element);
    const T* gate = static_cast<const T*>(x);
    swiglu_of(gate, gate + n, static_cast<T*>(y), n);
  });
}
void swiglu_grad_row(ir::DType dtype, const void* dy, const void* x, void* dx, int64_t n) {
  stored::with_element(dtype, [=](auto element) HWY_ATTR {
    using T = decltype(element);
    const T* gate = static_cast<const T*>(x);
    T* d_gate = static_cast<T*>(dx);
    swiglu_grad_of(static_cast<const T*>(dy), gate, gate + n, d_gate, d_gate + n, n);
  });
}

template <class Gelu, class T>
HWY_INLINE void bias_gelu(const T* x, const float* bias, T* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(Gelu::value(hn::Add(load(x + i, part), load(bias + i, part))), y + i, part);
  });
}
template <class Gelu, class T>
HWY_INLINE void bias_gelu_grad(const T* dy, const T* x, const float* bias, T* dx, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(Gelu::grad(load(dy + i, part), hn::Add(load(x + i, part), load(bias + i, part))), dx + i, part);
  });
}
void bias_gelu_row(ir::DType dtype, const void* x, const float* bias, void* y, int64_t n, ops::Gelu form) {
  stored::with_element(dtype, [=](auto element) HWY_ATTR {
    using T = decltype(element);
    act::with_gelu(form, [=](auto gelu) HWY_ATTR {
      bias_gelu<decltype(gelu)>(static_cast<const T*>(x), bias, static_cast<T*>(y), n);
    });
  });
}
void bias_gelu_grad_row(ir::DType dtype, const void* dy, const void* x, const float* bias, void* dx,
                        int64_t n, ops::Gelu form) {
  stored::with_element(dtype, [=](auto element) HWY_ATTR {
    using T = decltype(element);
    act::with_gelu(form, [=](auto gelu) HWY_ATTR {
      bias_gelu_grad<decltype(gelu)>(static_cast<const T*>(dy), static_cast<const T*>(x), bias,
                                     static_cast<T*>(dx), n);
    });
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(swiglu_row);
HWY_EXPORT(swiglu_grad_row);
HWY_EXPORT(bias_gelu_row);
HWY_EXPORT(bias_gelu_grad_row);

void swiglu(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny x(call.inputs[0]), y(call.outputs[0]);
  const ir::DType dtype = call.inputs[0].type.dtype;
  for_row_blocks(pool, y.rows(), y.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(swiglu_row)(dtype, x.row(r), y.row(r), y.cols());
  });
}

void swiglu_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), x(call.inputs[1]), dx(call.outputs[0]);
  const ir::DType dtype = call.inputs[0].type.dtype;
  for_row_blocks(pool, dy.rows(), dy.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(swiglu_grad_row)(dtype, dy.row(r), x.row(r), dx.row(r), dy.cols());
  });
}

void bias_gelu(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny x(call.inputs[0]), y(call.outputs[0]);
  const ir::DType dtype = call.inputs[0].type.dtype;
  const float* bias = call.inputs[1].as<const float>();
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(bias_gelu_row)(dtype, x.row(r), bias, y.row(r), x.cols(), form);
  });
}

void bias_gelu_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), x(call.inputs[1]), dx(call.outputs[0]);
  const ir::DType dtype = call.inputs[1].type.dtype;
  const float* bias = call.inputs[2].as<const float>();
  const ops::Gelu form = ops::gelu_form(call.op->attrs).form;
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(bias_gelu_grad_row)(dtype, dy.row(r), x.row(r), bias, dx.row(r), x.cols(), form);
  });
}

}  // namespace

std::span<const Kernel> activation_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "bias_gelu",
       .run = bias_gelu,
       .strided_inputs = 0b1,
       .stored_inputs = 0b1,
       .stored_outputs = 0b1},
      {.op = "bias_gelu_grad",
       .run = bias_gelu_grad,
       .strided_inputs = 0b11,
       .stored_inputs = 0b11,
       .stored_outputs = 0b1},
      {.op = "swiglu", .run = swiglu, .strided_inputs = 0b1, .stored_inputs = 0b1, .stored_outputs = 0b1},
      {.op = "swiglu_grad",
       .run = swiglu_grad,
       .strided_inputs = 0b11,
       .stored_inputs = 0b11,
       .stored_outputs = 0b1},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
