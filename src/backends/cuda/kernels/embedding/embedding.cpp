// Rows of a table by id, and the sums of rows' gradients.
#include <bit>

#include "backends/cuda/kernels/embedding/embedding_args.h"
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

int64_t num_keys(int64_t tokens) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(tokens, 2))));
}

int64_t keys_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<uint64_t>(num_keys(types.inputs[types.op == "embedding_grad" ? 1 : 2].num_elements()));
  return scratch.bytes();
}

/// Tokens of the padding id, which train nothing, come last.
Status sort_tokens(const KernelCall& call, const TensorRef& ids, uint64_t* keys, Stream& stream) {
  const int64_t tokens = ids.num_elements(), count = num_keys(tokens), no_id = -1;
  const int64_t padding = call.op->attrs.find("padding") != nullptr ? call.op->attrs.i64("padding") : no_id;
  PLIMSOLL_TRY(stream.launch(
      kTokenKeys, blocks(count, 256), {256}, 0,
      {.ids = ids.as<const int32_t>(), .tokens = tokens, .count = count, .padding = padding, .keys = keys}));
  SortTokens sort{
      .keys = keys, .count = count, .size = std::min<int64_t>(count, kSortedWithin), .all_sizes = 1};
  PLIMSOLL_TRY(stream.launch(kSortTokensWithin, blocks(count, kSortedWithin), {1024}, 0, sort));
  sort.all_sizes = 0;
  for (sort.size *= 2; sort.size <= count; sort.size *= 2) {
    for (sort.step = sort.size / 2; sort.step >= kSortedWithin; sort.step /= 2)
      PLIMSOLL_TRY(stream.launch(kSortTokensAcross, blocks(count / 2, 256), {256}, 0, sort));
    PLIMSOLL_TRY(stream.launch(kSortTokensWithin, blocks(count, kSortedWithin), {1024}, 0, sort));
  }
  return Ok{};
}

/// Onto `out`, which holds what there was before.
Status add_tokens(const KernelCall& call, const TensorRef& dy, const TensorRef& ids, const TensorRef& out,
                  bool from_zero, Stream& stream) {
  auto* keys = Scratch(call).take<uint64_t>(num_keys(ids.num_elements()));
  PLIMSOLL_TRY(sort_tokens(call, ids, keys, stream));
  const int64_t cols = out.shape().dim(1);
  const Dim grid{static_cast<uint32_t>(ids.num_elements()),
                 static_cast<uint32_t>(ceil_div(cols, kRowThreads))};
  return stream.launch(kAddTokens, grid, {kRowThreads}, 0,
                       {.dy = operand(dy),
                        .stride = row_stride(dy),
                        .keys = keys,
                        .tokens = ids.num_elements(),
                        .out = operand(out),
                        .cols = cols,
                        .from_zero = from_zero ? 1 : 0});
}

Status keep(const TensorRef& from, const TensorRef& to, Stream& stream) {
  if (from.data == to.data) return Ok{};
  return stream.copy(to.data, from.data, to.type.bytes().count);
}

Status embedding_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const TensorRef acc = input_or_none(call, 2);
  if (acc) {
    PLIMSOLL_TRY(keep(acc, out, stream));
  } else {  // -0.0, the neutral element
    const bool is_half_precision = ir::is_half_precision(out.type.dtype);
    const int64_t bytes = out.type.bytes().count;
    if (bytes % 4 != 0) {
      PLIMSOLL_TRY(stream.launch(kFillShort, blocks(out.num_elements(), 256), {256}, 0,
                                 {.out = out.data, .n = out.num_elements(), .bits = 0x8000}));
    } else {
      PLIMSOLL_TRY(stream.fill(out.data, bytes, is_half_precision ? 0x80008000U : 0x80000000U));
    }
  }
  return add_tokens(call, call.inputs[0], call.inputs[1], out, false, stream);
}

Status embedding_grad_add(const KernelCall& call, Stream& stream) {
  PLIMSOLL_TRY(keep(call.inputs[0], call.outputs[0], stream));
  return add_tokens(call, call.inputs[1], call.inputs[2], call.outputs[0], true, stream);
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
