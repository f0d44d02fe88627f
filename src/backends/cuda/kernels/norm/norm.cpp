// RMS and layer normalisation, alone and with the residual stream's addition.
#include "backends/cuda/kernels/norm/norm_args.h"
#include "backends/cuda/kernels/norm/sums.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

/// Of a block that takes a row, eight elements a thread.
Dim row_threads(int64_t cols) {
  return {static_cast<uint32_t>(std::clamp<int64_t>(round_up(ceil_div(cols, 8), 32), 32, 512))};
}

// Operands in order: x, residual where `fused`, weight, bias where `layer`; results: sum, y, mean, rstd.
template <bool kLayer, bool kFused>
Status forward(const KernelCall& call, Stream& stream) {
  size_t in = 0, out = 0;
  NormRows a;
  const TensorRef& x = call.inputs[in++];
  a.x = operand(x);
  a.cols = x.shape().dim(-1);
  a.x_stride = a.residual_stride = row_stride(x);
  if (kFused) {
    a.residual_stride = row_stride(call.inputs[in]);
    a.residual = operand(call.inputs[in++]);
  }
  a.weight = operand(call.inputs[in++]);
  if (kLayer) a.bias = operand(call.inputs[in++]);
  if (kFused) a.sum = operand(call.outputs[out++]);
  a.y = operand(call.outputs[out++]);
  if (kLayer) a.mean = call.outputs[out++].as<float>();
  a.rstd = call.outputs[out++].as<float>();
  a.eps = static_cast<float>(call.op->attrs.f64("eps"));
  return stream.launch(kNormRows, blocks(x.shape().num_rows(), 1), row_threads(a.cols), 0, a);
}

// Operands in order: dy, x, weight, mean where `layer`, rstd, d_residual where `fused`, acc_dw?, acc_db?. The
// parameters' gradients go first: dx may lie where an operand does.
template <bool kLayer, bool kFused>
Status backward(const KernelCall& call, Stream& stream) {
  size_t in = 0;
  const TensorRef &dy = call.inputs[in++], &x = call.inputs[in++];
  NormGrad a;
  a.dy = operand(dy);
  a.x = operand(x);
  a.weight = operand(call.inputs[in++]);
  if (kLayer) a.mean = call.inputs[in++].as<const float>();
  a.rstd = call.inputs[in++].as<const float>();
  a.cols = x.shape().dim(-1);
  a.dy_stride = row_stride(dy);
  a.x_stride = a.residual_stride = row_stride(x);
  if (kFused) {
    a.residual_stride = row_stride(call.inputs[in]);
    a.d_residual = operand(call.inputs[in++]);
  }
  a.dx = operand(call.outputs[0]);
  const TensorRef acc_dw = input_or_none(call, in), acc_db = input_or_none(call, in + 1);
  auto* partial = Scratch(call).take<float>(column_sum_elements(dy.shape()));
  PLIMSOLL_TRY(sum_columns({dy, x, a.mean, a.rstd}, partial, acc_dw, call.outputs[1], stream));
  if (kLayer) PLIMSOLL_TRY(sum_columns({dy}, partial, acc_db, call.outputs[2], stream));
  return stream.launch(kNormGradRows, blocks(x.shape().num_rows(), 1), row_threads(a.cols), 0, a);
}

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add_layer_norm", .run = forward<true, true>, .strided_inputs = 0b11},
      {.op = "add_rms_norm", .run = forward<false, true>, .strided_inputs = 0b11},
      {.op = "layer_norm", .run = forward<true, false>, .strided_inputs = 0b1},
      {.op = "layer_norm_grad",
       .run = backward<true, false>,
       .workspace_bytes = column_sum_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_column_sum},
      {.op = "layer_norm_grad_add",
       .run = backward<true, true>,
       .workspace_bytes = column_sum_bytes,
       .strided_inputs = 0b100011,
       .accepts = accepts_column_sum},
      {.op = "rms_norm", .run = forward<false, false>, .strided_inputs = 0b1},
      {.op = "rms_norm_grad",
       .run = backward<false, false>,
       .workspace_bytes = column_sum_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_column_sum},
      {.op = "rms_norm_grad_add",
       .run = backward<false, true>,
       .workspace_bytes = column_sum_bytes,
       .strided_inputs = 0b10011,
       .accepts = accepts_column_sum},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
