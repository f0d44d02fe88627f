// Pooling over windows of images.
#include "backends/cuda/kernels/elementwise/pooling_args.h"
#include "backends/cuda/kernels/operands.h"
#include "ops/pooling_window.h"

namespace plimsoll::cuda {
namespace {

DevicePoolAxis pool_axis_of(const ir::Attrs& attrs, size_t axis, int64_t extent) {
  const ops::PoolAxis a = ops::pool_axis(attrs, axis, extent);
  return {a.extent, a.kernel, a.stride, a.padding, a.windows()};
}

Pooling pooling_of(const KernelCall& call, const TensorRef& whole, const TensorRef& parts) {
  const ir::Attrs& attrs = call.op->attrs;
  return {.whole = operand(whole),
          .parts = operand(parts),
          .index = nullptr,
          .rows = pool_axis_of(attrs, 0, whole.shape().dim(1)),
          .cols = pool_axis_of(attrs, 1, whole.shape().dim(2)),
          .channels = whole.shape().dim(3),
          .n = call.outputs[0].num_elements(),
          .skip_padding = attrs.flag("skip_padding") ? 1 : 0};
}

template <bool kMax>
Status pool(const KernelCall& call, Stream& stream) {
  Pooling a = pooling_of(call, call.inputs[0], call.outputs[0]);
  if (kMax) a.index = call.outputs[1].as<uint8_t>();
  return stream.launch(kPool, blocks(a.n, kThreads), {kThreads}, 0, a);
}

template <bool kMax>
Status pool_grad(const KernelCall& call, Stream& stream) {
  Pooling a = pooling_of(call, call.outputs[0], call.inputs[0]);
  if (kMax) a.index = call.inputs[1].as<uint8_t>();
  return stream.launch(kPoolGrad, blocks(a.n, kThreads), {kThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> pooling_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "avg_pool2d", .run = pool<false>},
      {.op = "avg_pool2d_grad", .run = pool_grad<false>},
      {.op = "max_pool2d", .run = pool<true>},
      {.op = "max_pool2d_grad", .run = pool_grad<true>},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
