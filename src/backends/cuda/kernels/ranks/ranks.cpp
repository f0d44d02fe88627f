// Ops between ranks on a card. The sum does the additions of the CPU's kernel in the same order. The ops that
// exchange bytes have no transport on cards: they compute what rank 0 gets if all ranks hold the same values,
// as the ops' references do.
#include "ops/ranks.h"

#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"
#include "ops/shard.h"

namespace plimsoll::cuda {
namespace {

int64_t scratch_elements(const ir::Shape& received) {
  return (ops::rank_levels(received.dim(0)) - 1) * (received.num_elements() / received.dim(0));
}

int64_t sum_ranks_bytes(const ir::OpTypes& types) {
  return scratch_elements(types.inputs[0].shape) * int64_t{sizeof(float)};
}

Status sum_ranks(const KernelCall& call, Stream& stream) {
  const int64_t ranks = call.inputs[0].shape().dim(0), n = call.outputs[0].num_elements();
  const int64_t top = ops::rank_levels(ranks) - 1;
  const auto* received = call.inputs[0].as<const float>();
  auto* scratch = reinterpret_cast<float*>(call.workspace.data());
  const auto at = [&](int64_t level) {
    return level == top ? call.outputs[0].as<float>() : scratch + level * n;
  };
  Status status = Ok{};
  const auto copy = [&](float* to, const float* from) {
    if (status) status = stream.copy(to, from, n * int64_t{sizeof(float)});
  };
  const auto add = [&](float* to, const float* from) {
    if (!status) return;
    const Operand sum = operand_at(to, ir::DType::kF32);
    const Operand more = operand_at(const_cast<float*>(from), ir::DType::kF32);
    status = stream.launch(kBinary, blocks(n, kEach * kThreads), {kThreads}, 0,
                           {.x = sum, .y = more, .out = sum, .n = n, .what = BinaryOp::kAdd});
  };
  ops::in_order_of_ranks(
      ranks, [&](int64_t rank) { copy(at(0), received + rank * n); },
      [&](int64_t rank) { add(at(0), received + rank * n); },
      [&](int64_t level) { copy(at(level), at(level - 1)); },
      [&](int64_t level) { add(at(level), at(level - 1)); });
  return status;
}

Status exchange(const KernelCall& call, Stream& stream) {
  const int64_t piece = call.outputs[0].type.bytes().count / call.outputs[0].shape().dim(0);
  const int64_t first = std::min(piece, call.inputs[0].type.bytes().count);
  for (int64_t rank = 0; rank < call.outputs[0].shape().dim(0); ++rank) {
    std::byte* to = call.outputs[0].data + rank * piece;
    if (first < piece) PLIMSOLL_TRY(stream.fill(to, piece, 0));
    PLIMSOLL_TRY(stream.copy(to, call.inputs[0].data, first));
  }
  return Ok{};
}

/// Also of all_gather and unshard: of rank 0's tensor there is nothing to repeat.
Status repeat(const KernelCall& call, Stream& stream) {
  const int64_t piece = call.inputs[0].type.bytes().count, whole = call.outputs[0].type.bytes().count;
  for (int64_t at = 0; at < whole; at += piece)
    PLIMSOLL_TRY(stream.copy(call.outputs[0].data + at, call.inputs[0].data, std::min(piece, whole - at)));
  return Ok{};
}

/// Rank 0's, whose piece is the first.
Status own_piece(const KernelCall& call, Stream& stream) {
  const int64_t piece = call.outputs[0].type.bytes().count;
  const int64_t own = std::min(piece, call.inputs[0].type.bytes().count);
  // Words are filled, and a piece is whole words; what it has of the tensor need not be.
  if (own < piece) PLIMSOLL_TRY(stream.fill(call.outputs[0].data, piece, 0));
  return stream.copy(call.outputs[0].data, call.inputs[0].data, own);
}

Status put_piece(const KernelCall& call, Stream& stream) {
  const TensorRef &piece = call.inputs[0], &x = call.inputs[1], &whole = call.outputs[0];
  if (x.data != whole.data) PLIMSOLL_TRY(stream.copy(whole.data, x.data, x.type.bytes().count));
  return stream.copy(whole.data, piece.data, std::min(piece.type.bytes().count, whole.type.bytes().count));
}

/// Also from_owner.
Status own_tensor(const KernelCall& call, Stream& stream) {
  return stream.copy(call.outputs[0].data, call.inputs[0].data, call.outputs[0].type.bytes().count);
}

Status put_owned(const KernelCall& call, Stream& stream) {
  const TensorRef& value = call.inputs[call.op->attrs.i64("owner") == 0 ? 0 : 1];
  if (value.data == call.outputs[0].data) return Ok{};
  return stream.copy(call.outputs[0].data, value.data, value.type.bytes().count);
}

/// What other ranks add is 0 on rank 0.
Status own_draws(const KernelCall& call, Stream& stream) {
  constexpr int64_t kShared = 3 * int64_t{sizeof(int32_t)};
  PLIMSOLL_TRY(stream.fill(call.outputs[0].data, call.outputs[0].type.bytes().count, 0));
  return stream.copy(call.outputs[0].data, call.inputs[0].data, kShared);
}

/// Only the host's kernel launches look at them, and they know those of rank 0 (chunk_squares).
Status own_chunks(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const std::vector<int64_t>& elements = attrs.ints("elements");
  for (size_t t = 0; t < elements.size(); ++t) {
    const ops::OwnChunks own = ops::own_chunks_of(elements[t], attrs.ints("held")[t], attrs.i64("ranks"), 0);
    std::byte* words = call.outputs[0].data + t * ops::kChunkWords * sizeof(int32_t);
    const auto put = [&](size_t word, int32_t value) {
      return stream.fill(words + word * sizeof(int32_t), sizeof(int32_t), static_cast<uint32_t>(value));
    };
    PLIMSOLL_TRY(put(0, own.first));
    PLIMSOLL_TRY(put(1, own.count));
    PLIMSOLL_TRY(put(2, own.last_elements));
  }
  return Ok{};
}

}  // namespace

std::span<const Kernel> rank_kernels() {
  static const std::vector<Kernel> kKernels = {
      {.op = "exchange", .run = exchange},
      {.op = "gather_ranks", .run = repeat},
      {.op = "all_gather", .run = repeat},
      {.op = "own_piece", .run = own_piece},
      {.op = "put_piece", .run = put_piece},
      {.op = "unshard", .run = repeat},
      {.op = "own_tensor", .run = own_tensor},
      {.op = "from_owner", .run = own_tensor},
      {.op = "put_owned", .run = put_owned},
      {.op = "own_draws", .run = own_draws},
      {.op = "own_chunks", .run = own_chunks},
      {.op = "sum_ranks", .run = sum_ranks, .workspace_bytes = sum_ranks_bytes}};
  return kKernels;
}

}  // namespace plimsoll::cuda
