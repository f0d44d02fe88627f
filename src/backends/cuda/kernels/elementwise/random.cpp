// Random ops: draws as ops/philox.h lays them out.
#include "backends/cuda/kernels/elementwise/random_args.h"
#include "backends/cuda/kernels/operands.h"
#include "ops/philox.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kQuad = 4;  // elements a thread

uint32_t key_of(const KernelCall& call) { return static_cast<uint32_t>(call.op->attrs.i64("key")); }

Status dropout(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const double p = call.op->attrs.f64("p");
  const int64_t sequences = x.shape().dim(0), n = x.num_elements() / sequences;
  return stream.launch(kDropout, blocks(sequences * ceil_div(n, kQuad), kThreads), {kThreads}, 0,
                       {.x = operand(x),
                        .random = call.inputs[1].as<const uint32_t>(),
                        .out = operand(call.outputs[0]),
                        .sequences = sequences,
                        .n = n,
                        .key = key_of(call),
                        .threshold = ops::dropout_threshold(p),
                        .keep = static_cast<float>(1.0 - p)});
}

Status random_normal(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const int64_t n = call.outputs[0].num_elements();
  return stream.launch(kRandomNormal, blocks(n, kQuad * kThreads), {kThreads}, 0,
                       {.random = call.inputs[0].as<const uint32_t>(),
                        .out = operand(call.outputs[0]),
                        .n = n,
                        .mean = attrs.f64("mean"),
                        .std = attrs.f64("std"),
                        .key = key_of(call)});
}

}  // namespace

std::span<const Kernel> random_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "dropout", .run = dropout},
      {.op = "random_normal", .run = random_normal},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
