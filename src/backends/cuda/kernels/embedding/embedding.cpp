// Rows of a table by id, and the sums of rows' gradients.
#include "backends/cuda/kernels/embedding/embedding_args.h"
#include "backends/cuda/kernels/embedding/token_sums.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

constexpr uint32_t kRowThreads = 128;

Status embedding(const KernelCall& call, Stream& stream) {
  const TensorRef &table = call.inputs[0], &ids = call.inputs[1];
  return stream.launch(kEmbedding, blocks(ids.num_elements(), 1), {kRowThreads}, 0,
                       {.table = operand(table),
                        .stride = row_stride(table),
                        .ids = ids.as<const int32_t>(),
                        .out = operand(call.outputs[0]),
                        .cols = table.shape().dim(1)});
}

int64_t keys_bytes(const ir::OpTypes& types) {
  return token_sums_bytes(types.inputs[types.op == "embedding_grad" ? 1 : 2].num_elements());
}

Status embedding_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  PLIMSOLL_TRY(begin_token_sums(input_or_none(call, 2), out, stream));
  return add_tokens(call, call.inputs[0], call.inputs[1], out, table_of_rows(out), false, stream);
}

Status embedding_grad_add(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  PLIMSOLL_TRY(begin_token_sums(call.inputs[0], out, stream));
  return add_tokens(call, call.inputs[1], call.inputs[2], out, table_of_rows(out), true, stream);
}

}  // namespace

std::span<const Kernel> embedding_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "embedding", .run = embedding, .strided_inputs = 0b1},
      {.op = "embedding_grad", .run = embedding_grad, .workspace_bytes = keys_bytes, .strided_inputs = 0b1},
      {.op = "embedding_grad_add",
       .run = embedding_grad_add,
       .workspace_bytes = keys_bytes,
       .strided_inputs = 0b10},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
