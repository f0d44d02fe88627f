// Adapters beside an embedding. The gradient by columns is the embedding's, with the table the other way
// round.
#include <vector>

#include "backends/cuda/kernels/embedding/adapters_args.h"
#include "backends/cuda/kernels/embedding/token_sums.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

Status embedding_columns(const KernelCall& call, Stream& stream) {
  const ir::Shape& table = call.inputs[0].shape();
  EmbeddingColumns a;
  a.table = operand(call.inputs[0]);
  a.ids = call.inputs[1].as<const int32_t>();
  a.out = operand(call.outputs[0]);
  a.tokens = call.inputs[1].num_elements();
  a.rows = table.dim(0);
  a.columns = table.dim(1);
  return stream.launch(kEmbeddingColumns, blocks(a.tokens * a.rows, kAdapterThreads), {kAdapterThreads}, 0,
                       a);
}

int64_t columns_grad_bytes(const ir::OpTypes& types) {
  return token_sums_bytes(types.inputs[1].num_elements());
}

Status embedding_columns_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &dy = call.inputs[0], &ids = call.inputs[1], &out = call.outputs[0];
  PLIMSOLL_TRY(begin_token_sums(input_or_none(call, 2), out, stream));
  return add_tokens(call, dy, ids, out,
                    {.cols = out.shape().dim(0), .id_stride = 1, .col_stride = out.shape().dim(1)},
                    /*from_zero=*/false, stream);
}

/// body() for runs of rows that a launch takes.
template <typename Args, typename Body>
Status in_turns(const std::vector<int64_t>& tokens, Args& a, Body body) {
  for (size_t first = 0; first < tokens.size(); first += kRowTokens) {
    a.first = static_cast<int64_t>(first);
    a.count = static_cast<int>(std::min<size_t>(kRowTokens, tokens.size() - first));
    for (int i = 0; i < a.count; ++i) a.token[i] = static_cast<int>(tokens[first + static_cast<size_t>(i)]);
    PLIMSOLL_TRY(body());
  }
  return Ok{};
}

Status token_rows(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &rows = call.inputs[1], &ids = call.inputs[2], &out = call.outputs[0];
  if (x.data != out.data) PLIMSOLL_TRY(stream.copy(out.data, x.data, out.type.bytes().count));
  TokenRows a;
  a.rows = operand(rows);
  a.out = operand(out);
  a.ids = ids.as<const int32_t>();
  a.tokens = ids.num_elements();
  a.width = rows.shape().dim(1);
  return in_turns(call.op->attrs.ints("tokens"), a,
                  [&] { return stream.launch(kTokenRows, blocks(a.tokens, 1), {kAdapterThreads}, 0, a); });
}

Status token_rows_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &dy = call.inputs[0], &ids = call.inputs[1], &out = call.outputs[0];
  TokenRowsGrad a;
  a.dy = operand(dy);
  a.acc = operand(input_or_none(call, 2));
  a.out = operand(out);
  a.ids = ids.as<const int32_t>();
  a.tokens = ids.num_elements();
  a.width = out.shape().dim(1);
  return in_turns(call.op->attrs.ints("tokens"), a, [&] {
    const Dim grid{static_cast<uint32_t>(a.count), static_cast<uint32_t>(ceil_div(a.width, kAdapterThreads))};
    return stream.launch(kTokenRowsGrad, grid, {kAdapterThreads}, 0, a);
  });
}

}  // namespace

std::span<const Kernel> embedding_adapter_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "embedding_columns", .run = embedding_columns},
      {.op = "embedding_columns_grad", .run = embedding_columns_grad, .workspace_bytes = columns_grad_bytes},
      {.op = "token_rows", .run = token_rows},
      {.op = "token_rows_grad", .run = token_rows_grad},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
