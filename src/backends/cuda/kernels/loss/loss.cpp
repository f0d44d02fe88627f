// Cross-entropy, and loss scaling.
#include "backends/cuda/kernels/loss/loss.h"

#include "ops/loss_scale.h"

namespace plimsoll::cuda {
namespace {

Status cross_entropy(const KernelCall& call, Stream& stream) {
  const TensorRef& logits = call.inputs[0];
  const int64_t count = logits.shape().num_rows();
  auto* losses = Scratch(call).take<float>(count);
  LossRows rows;
  rows.logits = operand(logits);
  rows.targets = call.inputs[1].as<const int32_t>();
  rows.loss = losses;
  rows.lse = call.outputs[1].as<float>();
  rows.cols = logits.shape().dim(-1);
  rows.stride = row_stride(logits);
  PLIMSOLL_TRY(loss_rows(rows, count, stream));
  return sum_losses(losses, logits.shape(), input_or_none(call, 3), call.outputs[0], stream);
}

Status cross_entropy_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& logits = call.inputs[0];
  LossRows rows;
  rows.logits = operand(logits);
  rows.d = operand(call.outputs[0]);
  rows.targets = call.inputs[1].as<const int32_t>();
  rows.given_lse = call.inputs[2].as<const float>();
  rows.scale = call.inputs[3].as<const float>();
  rows.cols = rows.d_stride = logits.shape().dim(-1);
  rows.stride = row_stride(logits);
  return loss_rows(rows, logits.shape().num_rows(), stream);
}

Status unscale(const KernelCall& call, Stream& stream) {
  return stream.launch(kUnscale, {}, {}, 0,
                       {.norm = call.inputs[0].as<const float>(),
                        .scaler = call.inputs[1].as<const float>(),
                        .max_norm = static_cast<float>(ops::max_norm_of(call.op->attrs)),
                        .out = call.outputs[0].as<float>(),
                        .factor = call.outputs[1].as<float>()});
}

Status next_scale(const KernelCall& call, Stream& stream) {
  const ops::LossScaling scaling = ops::scaling_of(call.op->attrs);
  return stream.launch(kNextScale, {}, {}, 0,
                       {.scaler = call.inputs[0].as<const float>(),
                        .norm = call.inputs[1].as<const float>(),
                        .growth = scaling.growth_factor,
                        .backoff = scaling.backoff_factor,
                        .interval = scaling.growth_interval,
                        .out = call.outputs[0].as<float>()});
}

}  // namespace

int64_t row_losses_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(types.inputs[0].shape.num_rows());
  return scratch.bytes();
}

Status loss_rows(const LossRows& rows, int64_t count, Stream& stream) {
  const auto threads =
      static_cast<uint32_t>(std::clamp<int64_t>(round_up(ceil_div(rows.cols, 8), 32), 32, 512));
  return stream.launch(kLossRows, blocks(count, 1), {threads}, 0, rows);
}

Status sum_losses(const float* losses, const ir::Shape& x, const TensorRef& acc, const TensorRef& out,
                  Stream& stream) {
  const Granules granules(x);
  return stream.launch(kSumLosses, {}, {kGranuleRows}, 0,
                       {.losses = losses,
                        .granules = device_granules(granules),
                        .count = granules.count(),
                        .acc = data_or_null<const float>(acc),
                        .out = out.as<float>()});
}

std::span<const Kernel> loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "cross_entropy",
       .run = cross_entropy,
       .workspace_bytes = row_losses_bytes,
       .strided_inputs = 0b1},
      {.op = "cross_entropy_grad", .run = cross_entropy_grad, .strided_inputs = 0b1},
      {.op = "next_scale", .run = next_scale},
      {.op = "unscale", .run = unscale},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
