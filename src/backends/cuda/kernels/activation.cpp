// silu, gelu and what is fused with them.
#include "backends/cuda/kernels/operands.h"
#include "ops/gelu.h"

namespace plimsoll::cuda {
namespace {

constexpr int32_t kSilu = 3;  // behind gelu's forms, as activation.cu has it

int32_t form_of(const KernelCall& call) {
  if (call.op->attrs.find("approximate") == nullptr) return kSilu;
  return static_cast<int32_t>(ops::gelu_form(call.op->attrs).form);
}

/// Operands dy where `kGrad`, x, bias where `kBias`.
template <bool kGrad, bool kBias>
Status activate(const KernelCall& call, Stream& stream) {
  size_t in = 0;
  const Operand dy = kGrad ? operand(call.inputs[in++]) : Operand{};
  const TensorRef& x = call.inputs[in++];
  const Operand bias = kBias ? operand(call.inputs[in++]) : Operand{};
  const int64_t n = x.num_elements();
  return stream.launch("activate", blocks(n, kEach * kThreads), {kThreads}, 0, dy, operand(x), bias,
                       operand(call.outputs[0]), n, x.shape().dim(-1), form_of(call));
}

Status swiglu(const KernelCall& call, Stream& stream) {
  const TensorRef& y = call.outputs[0];
  const int64_t n = y.num_elements();
  return stream.launch("swiglu", blocks(n, kEach * kThreads), {kThreads}, 0, operand(call.inputs[0]),
                       operand(y), n, y.shape().dim(-1));
}

Status swiglu_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& dy = call.inputs[0];
  const int64_t n = dy.num_elements();
  return stream.launch("swiglu_grad", blocks(n, kEach * kThreads), {kThreads}, 0, operand(dy),
                       operand(call.inputs[1]), operand(call.outputs[0]), n, dy.shape().dim(-1));
}

}  // namespace

std::span<const Kernel> activation_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "bias_gelu", .run = activate<false, true>},
      {.op = "bias_gelu_grad", .run = activate<true, true>},
      {.op = "gelu", .run = activate<false, false>},
      {.op = "gelu_grad", .run = activate<true, false>},
      {.op = "silu", .run = activate<false, false>},
      {.op = "silu_grad", .run = activate<true, false>},
      {.op = "swiglu", .run = swiglu},
      {.op = "swiglu_grad", .run = swiglu_grad},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
