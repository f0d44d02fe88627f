// Gradient norm and clipping before the update: the squares of the gradients, their norm, clipping.
#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/optimizer/grad_norm_args.h"
#include "backends/cuda/kernels/ranks/own_rank.h"
#include "ops/ranks.h"
#include "ops/shard.h"

namespace plimsoll::cuda {
namespace {

int64_t sum_squares_bytes(const ir::OpTypes& types) {
  int64_t chunks = 0;
  for (const auto& input : types.inputs) chunks += ceil_div(input.num_elements(), kSquaresChunk);
  Scratch scratch;
  scratch.take<double>(chunks);
  return scratch.bytes();
}

int rounded_of(const KernelCall& call) {
  const ir::Attrs& attrs = call.op->attrs;
  return attrs.find("rounded") == nullptr
             ? SquaresBatch().rounded
             : static_cast<int>(ir::parse_dtype(attrs.str("rounded")).value_or(ir::DType::kF32));
}

/// `sum_squares` is that of one.
Status sums_of_squares(const KernelCall& call, Stream& stream) {
  SquaresBatch batch;
  batch.rounded = rounded_of(call);
  auto* sums = reinterpret_cast<double*>(Scratch(call).take<double>(1));
  for (size_t first = 0; first < call.inputs.size(); first += size_t{kSquaresTensors}) {
    const size_t count = std::min(size_t{kSquaresTensors}, call.inputs.size() - first);
    batch.count = static_cast<int>(count);
    batch.chunks = 0;
    for (size_t t = 0; t < count; ++t) {
      const TensorRef& x = call.inputs[first + t];
      batch.tensors[t] = {operand(x), x.num_elements(), batch.chunks};
      batch.chunks += ceil_div(x.num_elements(), kSquaresChunk);
    }
    batch.sums = sums;
    batch.out = call.outputs[0].as<float>() + first;
    PLIMSOLL_TRY(stream.launch(kSumSquaresChunks, blocks(batch.chunks, 1), {256}, 0, batch));
    PLIMSOLL_TRY(stream.launch(kSumSquaresTensors, {static_cast<uint32_t>(count)}, {256}, 0, batch));
    sums += batch.chunks;
  }
  return Ok{};
}

int64_t global_norm_bytes(const ir::OpTypes& /*types*/) {
  Scratch scratch;
  scratch.take<double>(1);
  return scratch.bytes();
}

Status global_norm(const KernelCall& call, Stream& stream) {
  auto* total = Scratch(call).take<double>(1);
  for (size_t first = 0; first < call.inputs.size(); first += size_t{kNormInputs}) {
    NormBatch batch;
    const size_t count = std::min(size_t{kNormInputs}, call.inputs.size() - first);
    batch.count = static_cast<int>(count);
    for (size_t i = 0; i < count; ++i) {
      batch.squares[i] = call.inputs[first + i].as<const float>();
      batch.n[i] = call.inputs[first + i].num_elements();
    }
    batch.begins = first == 0 ? 1 : 0;
    batch.total = total;
    if (first + count == call.inputs.size()) batch.norm = call.outputs[0].as<float>();
    PLIMSOLL_TRY(stream.launch(kGlobalNorm, {}, {256}, 0, batch));
  }
  return Ok{};
}

/// Of this rank's pieces, whose chunks lie side by side.
Status chunk_squares(const KernelCall& call, Stream& stream) {
  const std::vector<int64_t>& elements = call.op->attrs.ints("elements");
  const int64_t ranks = call.op->attrs.i64("ranks");
  const TensorRef& out = call.outputs[0];
  PLIMSOLL_TRY(stream.fill(out.data, out.type.bytes().count, 0));
  SquaresBatch batch;
  batch.rounded = rounded_of(call);
  batch.count = 1;
  auto* sums = out.as<double>();
  for (size_t t = 0; t < elements.size(); ++t) {
    TensorRef x = call.inputs[1 + t];
    const ops::OwnChunks own =
        ops::own_chunks_of(elements[t], x.num_elements(), ranks, own_rank(call, stream));
    x.data += own.first * int64_t{kSquaresChunk} * ir::bits(x.type.dtype) / 8;
    if (own.count > 0) {
      batch.tensors[0] = {operand(x), (own.count - 1) * int64_t{kSquaresChunk} + own.last_elements, 0};
      batch.chunks = own.count;
      batch.sums = sums;
      PLIMSOLL_TRY(stream.launch(kSumSquaresChunks, blocks(batch.chunks, 1), {256}, 0, batch));
    }
    sums += ops::piece_elements(elements[t], ranks) / kSquaresChunk;
  }
  return Ok{};
}

int64_t sum_chunk_squares_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<double>(types.inputs[0].num_elements() / 2);
  return scratch.bytes();
}

/// To one row of chunks a tensor, then as sum_squares.
Status sum_chunk_squares(const KernelCall& call, Stream& stream) {
  const std::vector<int64_t>& pieces = call.op->attrs.ints("pieces");
  const int64_t ranks = call.inputs[0].shape().dim(0), all = call.inputs[0].shape().dim(1);
  auto* sums = reinterpret_cast<double*>(Scratch(call).take<double>(1));
  int64_t first = 0;
  for (size_t begin = 0; begin < pieces.size(); begin += size_t{kSquaresTensors}) {
    SquaresBatch batch;
    const size_t count = std::min(size_t{kSquaresTensors}, pieces.size() - begin);
    batch.count = static_cast<int>(count);
    batch.sums = sums;
    batch.out = call.outputs[0].as<float>() + begin;
    for (size_t t = 0; t < count; ++t) {
      const int64_t piece = pieces[begin + t];
      batch.tensors[t].first_chunk = batch.chunks;
      for (int64_t rank = 0; rank < ranks; ++rank)
        PLIMSOLL_TRY(stream.copy(sums + batch.chunks + rank * piece,
                                 call.inputs[0].as<const double>() + rank * all + first,
                                 piece * int64_t{sizeof(double)}));
      batch.chunks += ranks * piece;
      first += piece;
    }
    PLIMSOLL_TRY(stream.launch(kSumSquaresTensors, {static_cast<uint32_t>(count)}, {256}, 0, batch));
    sums += batch.chunks;
  }
  return Ok{};
}

Status clip_scale(const KernelCall& call, Stream& stream) {
  return stream.launch(kClipScale, {}, {}, 0,
                       {.norm = call.inputs[0].as<const float>(),
                        .max_norm = static_cast<float>(call.op->attrs.f64("max_norm")),
                        .out = call.outputs[0].as<float>()});
}

}  // namespace

std::span<const Kernel> grad_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "chunk_squares", .run = chunk_squares},
      {.op = "clip_scale", .run = clip_scale},
      {.op = "global_norm", .run = global_norm, .workspace_bytes = global_norm_bytes},
      {.op = "sum_chunk_squares", .run = sum_chunk_squares, .workspace_bytes = sum_chunk_squares_bytes},
      {.op = "sum_squares", .run = sums_of_squares, .workspace_bytes = sum_squares_bytes},
      {.op = "sum_squares_sweep", .run = sums_of_squares, .workspace_bytes = sum_squares_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
