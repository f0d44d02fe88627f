// Fused activations: one pass over memory where the plain ops take three to five, from the same vector
// functions.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/activation.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/activation-inl.h"
#include "backends/cpu/kernels/operands.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace act = activations;
using vectors::for_vectors;
using vectors::load;
using vectors::store;
using vectors::V;

// gate [n], up [n] -> silu(gate) * up.
void swiglu_row(const float* gate, const float* up, float* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V g = load(gate + i, part);
    store(hn::Mul(act::silu(g, act::logistic(g)), load(up + i, part)), y + i, part);
  });
}

void swiglu_grad_row(const float* dy, const float* gate, const float* up, float* d_gate, float* d_up,
                     int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V d = load(dy + i, part), g = load(gate + i, part), u = load(up + i, part);
    const act::Logistic s = act::logistic(g);
    store(act::silu_grad(hn::Mul(d, u), g, s), d_gate + i, part);
    store(hn::Mul(d, act::silu(g, s)), d_up + i, part);
  });
}

template <class Gelu>
HWY_INLINE void bias_gelu(const float* x, const float* bias, float* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(Gelu::value(hn::Add(load(x + i, part), load(bias + i, part))), y + i, part);
  });
}
template <class Gelu>
HWY_INLINE void bias_gelu_grad(const float* dy, const float* x, const float* bias, float* dx, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(Gelu::grad(load(dy + i, part), hn::Add(load(x + i, part), load(bias + i, part))), dx + i, part);
  });
}
void bias_gelu_row(const float* x, const float* bias, float* y, int64_t n, bool tanh) {
  tanh ? bias_gelu<act::GeluTanh>(x, bias, y, n) : bias_gelu<act::GeluErf>(x, bias, y, n);
}
void bias_gelu_grad_row(const float* dy, const float* x, const float* bias, float* dx, int64_t n, bool tanh) {
  tanh ? bias_gelu_grad<act::GeluTanh>(dy, x, bias, dx, n) : bias_gelu_grad<act::GeluErf>(dy, x, bias, dx, n);
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
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<float>(call.outputs[0]);
  for_row_blocks(pool, y.rows, y.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(swiglu_row)(x.row(r), x.row(r) + y.cols, y.row(r), y.cols);
  });
}

void swiglu_grad(const KernelCall& call, ThreadPool& pool) {
  const auto dy = rows_of<const float>(call.inputs[0]);
  const auto x = rows_of<const float>(call.inputs[1]);
  const auto dx = rows_of<float>(call.outputs[0]);
  for_row_blocks(pool, dy.rows, dy.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(swiglu_grad_row)
    (dy.row(r), x.row(r), x.row(r) + dy.cols, dx.row(r), dx.row(r) + dy.cols, dy.cols);
  });
}

bool is_tanh(const KernelCall& call) { return call.op->attrs.str("approximate") == "tanh"; }

void bias_gelu(const KernelCall& call, ThreadPool& pool) {
  const auto x = rows_of<const float>(call.inputs[0]);
  const auto y = rows_of<float>(call.outputs[0]);
  const float* bias = call.inputs[1].as<const float>();
  const bool tanh = is_tanh(call);
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(bias_gelu_row)(x.row(r), bias, y.row(r), x.cols, tanh);
  });
}

void bias_gelu_grad(const KernelCall& call, ThreadPool& pool) {
  const auto dy = rows_of<const float>(call.inputs[0]);
  const auto x = rows_of<const float>(call.inputs[1]);
  const auto dx = rows_of<float>(call.outputs[0]);
  const float* bias = call.inputs[2].as<const float>();
  const bool tanh = is_tanh(call);
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(bias_gelu_grad_row)(dy.row(r), x.row(r), bias, dx.row(r), x.cols, tanh);
  });
}

}  // namespace

std::span<const Kernel> activation_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "bias_gelu", .run = bias_gelu, .strided_inputs = 0b1},
      {.op = "bias_gelu_grad", .run = bias_gelu_grad, .strided_inputs = 0b11},
      {.op = "swiglu", .run = swiglu, .strided_inputs = 0b1},
      {.op = "swiglu_grad", .run = swiglu_grad, .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
