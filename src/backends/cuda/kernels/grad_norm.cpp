// Gradient norm and clipping before the update: the squares of the gradients, their norm, clipping.
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kChunk = 16384;  // elements

/// As grad_norm.cu has them.
struct SquaresTensor {
  Operand x;
  int64_t n = 0, first_chunk = 0;
};
struct SquaresBatch {
  static constexpr size_t kTensors = 64;
  SquaresTensor tensors[kTensors];
  int64_t chunks = 0;
  int32_t count = 0, rounded = 0;
};
struct NormBatch {
  static constexpr size_t kInputs = 128;
  const float* squares[kInputs] = {};
  int64_t n[kInputs] = {};
  int32_t count = 0;
};

int64_t sum_squares_bytes(const ir::OpTypes& types) {
  int64_t chunks = 0;
  for (const auto& input : types.inputs) chunks += ceil_div(input.num_elements(), kChunk);
  Scratch scratch;
  scratch.take<double>(chunks);
  return scratch.bytes();
}

/// `sum_squares` is that of one.
Status sums_of_squares(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  SquaresBatch batch;
  if (attrs.find("rounded") != nullptr)
    batch.rounded = static_cast<int32_t>(ir::parse_dtype(attrs.str("rounded")).value_or(ir::DType::kF32));
  auto* sums = reinterpret_cast<double*>(Scratch(call).take<double>(1));
  for (size_t first = 0; first < call.inputs.size(); first += SquaresBatch::kTensors) {
    const size_t count = std::min(SquaresBatch::kTensors, call.inputs.size() - first);
    batch.count = static_cast<int32_t>(count);
    batch.chunks = 0;
    for (size_t t = 0; t < count; ++t) {
      const TensorRef& x = call.inputs[first + t];
      batch.tensors[t] = {operand(x), x.num_elements(), batch.chunks};
      batch.chunks += ceil_div(x.num_elements(), kChunk);
    }
    PLIMSOLL_TRY(stream.launch("sum_squares_chunks", blocks(batch.chunks, 1), {256}, 0, batch, sums));
    PLIMSOLL_TRY(stream.launch("sum_squares_tensors", {static_cast<uint32_t>(count)}, {256}, 0, batch,
                               static_cast<const double*>(sums), call.outputs[0].as<float>() + first));
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
  for (size_t first = 0; first < call.inputs.size(); first += NormBatch::kInputs) {
    NormBatch batch;
    const size_t count = std::min(NormBatch::kInputs, call.inputs.size() - first);
    batch.count = static_cast<int32_t>(count);
    for (size_t i = 0; i < count; ++i) {
      batch.squares[i] = call.inputs[first + i].as<const float>();
      batch.n[i] = call.inputs[first + i].num_elements();
    }
    const bool is_last = first + count == call.inputs.size();
    PLIMSOLL_TRY(stream.launch("global_norm", {}, {256}, 0, batch, total, static_cast<int32_t>(first == 0),
                               is_last ? call.outputs[0].as<float>() : static_cast<float*>(nullptr)));
  }
  return Ok{};
}

Status clip_scale(const KernelCall& call, Stream& stream) {
  return stream.launch("clip_scale", {}, {}, 0, call.inputs[0].as<const float>(),
                       static_cast<float>(call.op->attrs.f64("max_norm")), call.outputs[0].as<float>());
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
