// Gradient norm and clipping before the update: the squares of the gradients, their norm, clipping.
#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/optimizer/grad_norm_args.h"

namespace plimsoll::cuda {
namespace {

int64_t sum_squares_bytes(const ir::OpTypes& types) {
  int64_t chunks = 0;
  for (const auto& input : types.inputs) chunks += ceil_div(input.num_elements(), kSquaresChunk);
  Scratch scratch;
  scratch.take<double>(chunks);
  return scratch.bytes();
}

/// `sum_squares` is that of one.
Status sums_of_squares(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  SquaresBatch batch;
  if (attrs.find("rounded") != nullptr)
    batch.rounded = static_cast<int>(ir::parse_dtype(attrs.str("rounded")).value_or(ir::DType::kF32));
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

Status clip_scale(const KernelCall& call, Stream& stream) {
  return stream.launch(kClipScale, {}, {}, 0,
                       {.norm = call.inputs[0].as<const float>(),
                        .max_norm = static_cast<float>(call.op->attrs.f64("max_norm")),
                        .out = call.outputs[0].as<float>()});
}

}  // namespace

std::span<const Kernel> grad_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "clip_scale", .run = clip_scale},
      {.op = "global_norm", .run = global_norm, .workspace_bytes = global_norm_bytes},
      {.op = "sum_squares", .run = sums_of_squares, .workspace_bytes = sum_squares_bytes},
      {.op = "sum_squares_sweep", .run = sums_of_squares, .workspace_bytes = sum_squares_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
