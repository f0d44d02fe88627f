#include "backends/cuda/kernels/elementwise/accumulate_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

Status accumulate(const KernelCall& call, Stream& stream) {
  Accumulate a;
  a.g = operand(call.inputs[0]);
  a.acc = operand(input_or_none(call, 2));
  a.out = operand(call.outputs[0]);
  a.random = call.inputs[1].as<const uint32_t>();
  a.n = call.outputs[0].num_elements();
  a.key = static_cast<uint32_t>(call.op->attrs.i64("key"));
  return stream.launch(kAccumulate, blocks(a.n, kEach * kAccumulateThreads), {kAccumulateThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> accumulate_kernels() {
  static constexpr Kernel kernels[] = {{.op = "accumulate", .run = accumulate}};
  return kernels;
}

}  // namespace plimsoll::cuda
