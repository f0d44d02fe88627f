// Rows of sequences by index, and positions.
#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/sequence/rows_args.h"

namespace plimsoll::cuda {
namespace {

Status positions(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const bool documents = call.op->def->name == "document_positions";
  const ir::Attr* const first = call.op->attrs.find("first");
  return stream.launch(kPositions, blocks(out.num_elements(), kThreads), {kThreads}, 0,
                       {.start = data_or_null<const int32_t>(input_or_none(call, 0)),
                        .out = out.as<int32_t>(),
                        .n = out.num_elements(),
                        .tokens = out.shape().dim(1),
                        .sign = documents ? -1 : 0,
                        .first = first == nullptr ? 0 : static_cast<int>(call.op->attrs.i64("first"))});
}

Status gather_rows(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &out = call.outputs[0];
  return stream.launch(kGatherRows, blocks(out.shape().num_rows(), 1), {kThreads}, 0,
                       {.x = operand(x),
                        .x_row = x.strides[1],
                        .x_sequence = x.strides[0],
                        .index = call.inputs[1].as<const int32_t>(),
                        .out = operand(out),
                        .rows = x.shape().dim(1),
                        .each = out.shape().dim(1),
                        .cols = out.shape().dim(-1),
                        .back = 0});
}

Status gather_rows_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &dy = call.inputs[0], &out = call.outputs[0];
  return stream.launch(kGatherRows, blocks(out.shape().num_rows(), 1), {kThreads}, 0,
                       {.x = operand(dy),
                        .x_row = dy.strides[1],
                        .x_sequence = dy.strides[0],
                        .index = call.inputs[1].as<const int32_t>(),
                        .out = operand(out),
                        .rows = out.shape().dim(1),
                        .each = dy.shape().dim(1),
                        .cols = out.shape().dim(-1),
                        .back = 1});
}

}  // namespace

std::span<const Kernel> row_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "document_positions", .run = positions},
      {.op = "gather_rows", .run = gather_rows, .strided_inputs = 0b1},
      {.op = "gather_rows_grad", .run = gather_rows_grad},
      {.op = "positions", .run = positions},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
