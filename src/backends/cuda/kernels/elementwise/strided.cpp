// Gradients of slices, axes in reverse order, elements by index.
#include "backends/cuda/kernels/elementwise/strided_args.h"
#include "backends/cuda/kernels/operands.h"
#include "base/at.h"

namespace plimsoll::cuda {
namespace {

int bytes_of(const TensorRef& ref) { return ir::bits(ref.type.dtype) / 8; }

Status move_along(const KernelCall& call, Stream& stream, int64_t start, int64_t step) {
  const TensorRef &from = call.inputs[0], &to = call.outputs[0];
  const int axis = static_cast<int>(call.op->attrs.i64("axis"));
  AlongAxis args{.from = from.data,
                 .to = to.data,
                 .n = to.num_elements(),
                 .extent = to.shape().dim(axis),
                 .from_extent = from.shape().dim(axis),
                 .start = start,
                 .step = step,
                 .bytes = bytes_of(to)};
  for (int i = axis + 1; i < to.shape().rank(); ++i) args.inner *= to.shape().dim(i);
  return stream.launch(kAlongAxis, blocks(args.n, kThreads), {kThreads}, 0, args);
}

Status slice_grad(const KernelCall& call, Stream& stream) {
  return move_along(call, stream, call.op->attrs.i64("start"), call.op->attrs.i64("step"));
}
Status flip(const KernelCall& call, Stream& stream) { return move_along(call, stream, 0, -1); }

Status gather(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &index = call.inputs[1];
  const int rank = x.shape().rank(), lead = 6 - rank;
  const int axis = static_cast<int>(call.op->attrs.i64("axis"));
  const ir::Strides strides = ir::dense_strides(x.shape());
  GatherArgs args{.x = x.data,
                  .index = index.as<const int>(),
                  .y = call.outputs[0].data,
                  .along = strides[at(axis)],
                  .n = index.num_elements(),
                  .bytes = bytes_of(x)};
  for (int i = 0; i < rank; ++i) {
    args.extent[lead + i] = index.shape().dim(i);
    args.stride[lead + i] = i == axis ? 0 : strides[at(i)];
  }
  return stream.launch(kGather, blocks(args.n, kThreads), {kThreads}, 0, args);
}

Status gather_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &index = call.inputs[1], &dx = call.outputs[0];
  const int rank = dx.shape().rank(), lead = 6 - rank;
  GatherGradArgs args{.dy = operand(call.inputs[0]),
                      .dx = operand(dx),
                      .index = index.as<const int>(),
                      .n = dx.num_elements(),
                      .axis = lead + static_cast<int>(call.op->attrs.i64("axis"))};
  for (int i = 0; i < rank; ++i) {
    args.extent[lead + i] = dx.shape().dim(i);
    args.given[lead + i] = index.shape().dim(i);
  }
  return stream.launch(kGatherGrad, blocks(args.n, kThreads), {kThreads}, 0, args);
}

}  // namespace

std::span<const Kernel> strided_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "flip", .run = flip},
      {.op = "gather", .run = gather},
      {.op = "gather_grad", .run = gather_grad},
      {.op = "slice_grad", .run = slice_grad},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
