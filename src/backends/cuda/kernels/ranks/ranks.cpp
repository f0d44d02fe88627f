// Ops between ranks on a card. The sum does the additions of the CPU's kernel in the same order. A device
// that is alone computes what rank 0 gets if all ranks hold the same values, as the ops' references do.
#include "ops/ranks.h"

#include <algorithm>
#include <vector>

#include "backends/cuda/collectives.h"
#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/ranks/own_rank.h"
#include "backends/cuda/kernels/ranks/ranks_args.h"
#include "ops/shard.h"

namespace plimsoll::cuda {
namespace {

Status sum_ranks(const KernelCall& call, Stream& stream) {
  static_assert(kSumFanIn == ops::kRankFanIn);
  const int64_t ranks = call.inputs[0].shape().dim(0), n = call.outputs[0].num_elements();
  const int64_t levels = ops::rank_levels(ranks);
  PLIMSOLL_CHECK(levels <= kSumLevels, "too many ranks");
  return stream.launch(kSumRanks, blocks(n, kThreads), {kThreads}, 0,
                       {.received = call.inputs[0].as<const float>(),
                        .out = call.outputs[0].as<float>(),
                        .n = n,
                        .ranks = static_cast<int>(ranks),
                        .levels = static_cast<int>(levels)});
}

int64_t bytes_of(const TensorRef& ref) { return ref.type.bytes().count; }

/// Where the rank's piece of so many bytes lies in a tensor; of the last ones less, or nothing.
struct Part {
  int64_t begin = 0, bytes = 0;
};
Part piece_of(int64_t whole_bytes, int64_t rank, int64_t piece_bytes) {
  const int64_t begin = std::min(whole_bytes, rank * piece_bytes);
  return {begin, std::min(piece_bytes, whole_bytes - begin)};
}

Status exchange(const KernelCall& call, Stream& stream) {
  const int64_t piece = bytes_of(call.outputs[0]) / call.outputs[0].shape().dim(0);
  if (Collectives* others = collectives_of(call, stream))
    return others->exchange(call.inputs[0].data, bytes_of(call.inputs[0]), piece, call.outputs[0].data,
                            stream);
  const int64_t first = std::min(piece, bytes_of(call.inputs[0]));
  for (int64_t rank = 0; rank < call.outputs[0].shape().dim(0); ++rank) {
    std::byte* to = call.outputs[0].data + rank * piece;
    if (first < piece) PLIMSOLL_TRY(stream.fill(to, piece, 0));
    PLIMSOLL_TRY(stream.copy(to, call.inputs[0].data, first));
  }
  return Ok{};
}

/// Also of all_gather.
Status gather(const KernelCall& call, Stream& stream) {
  const int64_t piece = bytes_of(call.inputs[0]), whole = bytes_of(call.outputs[0]);
  if (Collectives* others = collectives_of(call, stream))
    return others->gather(call.inputs[0].data, piece, call.outputs[0].data, whole, stream);
  for (int64_t at = 0; at < whole; at += piece)
    PLIMSOLL_TRY(stream.copy(call.outputs[0].data + at, call.inputs[0].data, std::min(piece, whole - at)));
  return Ok{};
}

Status own_piece(const KernelCall& call, Stream& stream) {
  const int64_t piece = bytes_of(call.outputs[0]);
  const Part own = piece_of(bytes_of(call.inputs[0]), own_rank(call, stream), piece);
  // Words are filled, and a piece is whole words; what it has of the tensor need not be.
  if (own.bytes < piece) PLIMSOLL_TRY(stream.fill(call.outputs[0].data, piece, 0));
  return stream.copy(call.outputs[0].data, call.inputs[0].data + own.begin, own.bytes);
}

Status put_piece(const KernelCall& call, Stream& stream) {
  const TensorRef &piece = call.inputs[0], &x = call.inputs[1], &whole = call.outputs[0];
  if (x.data != whole.data) PLIMSOLL_TRY(stream.copy(whole.data, x.data, bytes_of(x)));
  const Part own = piece_of(bytes_of(whole), own_rank(call, stream), bytes_of(piece));
  return stream.copy(whole.data + own.begin, piece.data, own.bytes);
}

/// Of operands of one type, that which is of this rank, or the last.
Status own_tensor(const KernelCall& call, Stream& stream) {
  const auto own = std::min<size_t>(static_cast<size_t>(own_rank(call, stream)), call.inputs.size() - 1);
  return stream.copy(call.outputs[0].data, call.inputs[own].data, bytes_of(call.outputs[0]));
}

Status from_owner(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &out = call.outputs[0];
  const auto owner = static_cast<int>(call.op->attrs.i64("owner"));
  Collectives* others = collectives_of(call, stream);
  if (others == nullptr || others->rank() == owner)
    if (x.data != out.data) PLIMSOLL_TRY(stream.copy(out.data, x.data, bytes_of(out)));
  return others == nullptr ? Status(Ok{}) : others->broadcast(owner, out.data, bytes_of(out), stream);
}

Status unshard(const KernelCall& call, Stream& stream) {
  return call.op->attrs.i64("owner") >= 0 ? from_owner(call, stream) : gather(call, stream);
}

Status put_owned(const KernelCall& call, Stream& stream) {
  const bool owns = call.op->attrs.i64("owner") == own_rank(call, stream);
  const TensorRef& value = call.inputs[owns ? 0 : 1];
  if (value.data == call.outputs[0].data) return Ok{};
  return stream.copy(call.outputs[0].data, value.data, bytes_of(value));
}

Status put_word(const TensorRef& to, int64_t word, int64_t value, Stream& stream) {
  return stream.fill(to.data + word * int64_t{sizeof(int32_t)}, sizeof(int32_t),
                     static_cast<uint32_t>(value));
}

Status own_draws(const KernelCall& call, Stream& stream) {
  constexpr int64_t kShared = 3;
  const TensorRef& draws = call.outputs[0];
  const int64_t rank = own_rank(call, stream);
  const std::vector<int64_t>& keys = call.op->attrs.ints("keys");
  PLIMSOLL_TRY(stream.copy(draws.data, call.inputs[0].data, kShared * int64_t{sizeof(int32_t)}));
  PLIMSOLL_TRY(put_word(draws, kShared, 0, stream));
  PLIMSOLL_TRY(put_word(draws, 4, rank * call.op->attrs.i64("elements") / 4, stream));
  return put_word(draws, 5, keys[static_cast<size_t>(std::min(rank, std::ssize(keys) - 1))] ^ keys[0],
                  stream);
}

/// Only launches of the host look at them, and they know them (chunk_squares).
Status own_chunks(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const std::vector<int64_t>& elements = attrs.ints("elements");
  int64_t word = 0;
  for (size_t t = 0; t < elements.size(); ++t) {
    const ops::OwnChunks own =
        ops::own_chunks_of(elements[t], attrs.ints("held")[t], attrs.i64("ranks"), own_rank(call, stream));
    for (const int32_t value : {own.first, own.count, own.last_elements})
      PLIMSOLL_TRY(put_word(call.outputs[0], word++, value, stream));
  }
  return Ok{};
}

}  // namespace

std::span<const Kernel> rank_kernels() {
  static const std::vector<Kernel> kKernels = {
      {.op = "exchange", .run = exchange},     {.op = "gather_ranks", .run = gather},
      {.op = "all_gather", .run = gather},     {.op = "own_piece", .run = own_piece},
      {.op = "put_piece", .run = put_piece},   {.op = "own_tensor", .run = own_tensor},
      {.op = "from_owner", .run = from_owner}, {.op = "put_owned", .run = put_owned},
      {.op = "own_draws", .run = own_draws},   {.op = "own_chunks", .run = own_chunks},
      {.op = "unshard", .run = unshard},       {.op = "sum_ranks", .run = sum_ranks}};
  return kKernels;
}

}  // namespace plimsoll::cuda
