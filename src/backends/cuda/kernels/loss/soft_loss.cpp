// Cross-entropy against smoothed and mixed targets.
#include "backends/cuda/kernels/loss/loss.h"
#include "backends/cuda/kernels/loss/soft_loss_args.h"

namespace plimsoll::cuda {
namespace {

SoftLossRows soft_rows(const KernelCall& call) {
  const TensorRef& logits = call.inputs[0];
  const double smoothing = call.op->attrs.f64("smoothing");
  SoftLossRows rows;
  rows.logits = operand(logits);
  rows.targets = call.inputs[1].as<const int32_t>();
  rows.second = data_or_null<const int32_t>(input_or_none(call, 4));
  rows.share = data_or_null<const float>(input_or_none(call, 5));
  rows.cols = logits.shape().dim(-1);
  rows.stride = row_stride(logits);
  rows.hard = 1.0 - smoothing;
  rows.rest = smoothing / static_cast<double>(rows.cols);
  return rows;
}
Dim soft_row_threads(const SoftLossRows& rows) {
  return {static_cast<uint32_t>(std::clamp<int64_t>(round_up(rows.cols, 32), 32, 256))};
}

Status soft_cross_entropy(const KernelCall& call, Stream& stream) {
  const ir::Shape& logits = call.inputs[0].shape();
  SoftLossRows rows = soft_rows(call);
  rows.loss = Scratch(call).take<float>(logits.num_rows());
  rows.lse = call.outputs[1].as<float>();
  PLIMSOLL_TRY(stream.launch(kSoftLossRows, blocks(logits.num_rows(), 1), soft_row_threads(rows), 0, rows));
  return sum_losses(rows.loss, logits, input_or_none(call, 3), call.outputs[0], stream);
}

Status soft_cross_entropy_grad(const KernelCall& call, Stream& stream) {
  SoftLossRows rows = soft_rows(call);
  rows.d = operand(call.outputs[0]);
  rows.given_lse = call.inputs[2].as<const float>();
  rows.scale = call.inputs[3].as<const float>();
  return stream.launch(kSoftLossGrad, blocks(call.inputs[0].shape().num_rows(), 1), soft_row_threads(rows), 0,
                       rows);
}

}  // namespace

std::span<const Kernel> soft_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "soft_cross_entropy",
       .run = soft_cross_entropy,
       .workspace_bytes = row_losses_bytes,
       .strided_inputs = 0b1},
      {.op = "soft_cross_entropy_grad", .run = soft_cross_entropy_grad, .strided_inputs = 0b1},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
