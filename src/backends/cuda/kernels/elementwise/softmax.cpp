// Softmax over dense rows.
#include "backends/cuda/kernels/elementwise/softmax_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

Status softmax(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  return stream.launch(kSoftmax, {static_cast<uint32_t>(x.shape().num_rows())}, {kThreads}, 0,
                       {.dy = {},
                        .x = operand(x),
                        .out = operand(call.outputs[0]),
                        .cols = x.shape().dim(-1),
                        .log = call.op->attrs.flag("log") ? 1 : 0});
}

Status softmax_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& dy = call.inputs[0];
  return stream.launch(kSoftmaxGrad, {static_cast<uint32_t>(dy.shape().num_rows())}, {kThreads}, 0,
                       {.dy = operand(dy),
                        .x = operand(call.inputs[1]),
                        .out = operand(call.outputs[0]),
                        .cols = dy.shape().dim(-1),
                        .log = call.op->attrs.flag("log") ? 1 : 0});
}

}  // namespace

std::span<const Kernel> softmax_kernels() {
  static constexpr Kernel kernels[] = {{.op = "softmax", .run = softmax},
                                       {.op = "softmax_grad", .run = softmax_grad}};
  return kernels;
}

}  // namespace plimsoll::cuda
