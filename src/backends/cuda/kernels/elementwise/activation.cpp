// silu, gelu and what is fused with them.
#include "backends/cuda/kernels/elementwise/activation_args.h"
#include "backends/cuda/kernels/operands.h"
#include "ops/gelu.h"

namespace plimsoll::cuda {
namespace {

int form_of(const KernelCall& call) {
  if (call.op->attrs.find("approximate") == nullptr) return kSilu;
  return static_cast<int>(ops::gelu_form(call.op->attrs).form);
}

/// Operands dy where `kGrad`, x, bias where `kBias`.
template <bool kGrad, bool kBias>
Status activate(const KernelCall& call, Stream& stream) {
  size_t in = 0;
  const Operand dy = kGrad ? operand(call.inputs[in++]) : Operand{};
  const TensorRef& x = call.inputs[in++];
  const Operand bias = kBias ? operand(call.inputs[in++]) : Operand{};
  const int64_t n = x.num_elements();
  return stream.launch(kActivate, blocks(n, kEach * kThreads), {kThreads}, 0,
                       {.dy = dy,
                        .x = operand(x),
                        .bias = bias,
                        .out = operand(call.outputs[0]),
                        .n = n,
                        .cols = x.shape().dim(-1),
                        .form = form_of(call)});
}

Status swiglu(const KernelCall& call, Stream& stream) {
  const TensorRef& y = call.outputs[0];
  const int64_t n = y.num_elements();
  return stream.launch(
      kSwiglu, blocks(n, kEach * kThreads), {kThreads}, 0,
      {.dy = {}, .x = operand(call.inputs[0]), .out = operand(y), .n = n, .cols = y.shape().dim(-1)});
}

Status swiglu_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& dy = call.inputs[0];
  const int64_t n = dy.num_elements();
  return stream.launch(kSwigluGrad, blocks(n, kEach * kThreads), {kThreads}, 0,
                       {.dy = operand(dy),
                        .x = operand(call.inputs[1]),
                        .out = operand(call.outputs[0]),
                        .n = n,
                        .cols = dy.shape().dim(-1)});
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
