// Batch normalisation.
#include "backends/cuda/kernels/norm/batch_norm.h"

#include "backends/cuda/kernels/norm/channels.h"

namespace plimsoll::cuda {

int64_t batch_statistics_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(2 * share_elements(types.inputs[0].shape));
  return scratch.bytes();
}

Status batch_statistics(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const Granules granules(x.shape());
  const int64_t shares = share_elements(x.shape()), channels = x.shape().dim(-1);
  float* means = Scratch(call).take<float>(2 * shares);
  PLIMSOLL_TRY(channel_moments(x, means, stream));
  return stream.launch(kJoinMoments, blocks(channels, kChannelsOfBlock), kJoinThreads, 0,
                       {.means = means,
                        .squares = means + shares,
                        .mean = call.outputs[0].as<float>(),
                        .variance = call.outputs[1].as<float>(),
                        .granules = device_granules(granules),
                        .count = granules.count(),
                        .rows = granules.rows(),
                        .channels = channels});
}

namespace {

/// In scratch [3, channels]: rstd, scale, shift.
int64_t coefficient_elements(const ir::Shape& x) { return 3 * x.dim(-1); }

Status prepare_batch_norm(const ChannelCoefficients& coefficients, Stream& stream) {
  return stream.launch(kChannelCoefficients, blocks(coefficients.channels, kThreads), {kThreads}, 0,
                       coefficients);
}
ChannelCoefficients coefficients_of(const KernelCall& call, const TensorRef& variance, float* scratch) {
  const int64_t channels = variance.num_elements();
  ChannelCoefficients c;
  c.variance = variance.as<const float>();
  c.eps = call.op->attrs.f64("eps");
  c.rstd = scratch;
  c.scale = scratch + channels;
  c.shift = scratch + 2 * channels;
  c.channels = channels;
  return c;
}
DeviceChannels batch_channels(const ChannelCoefficients& c, const TensorRef& mean, int64_t rows) {
  return {mean.as<const float>(), c.scale, c.shift, c.channels, rows};
}

}  // namespace

int64_t batch_norm_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(coefficient_elements(types.inputs[0].shape));
  return scratch.bytes();
}

Status batch_norm(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  ChannelCoefficients c =
      coefficients_of(call, call.inputs[2], Scratch(call).take<float>(coefficient_elements(x.shape())));
  c.weight = operand(call.inputs[3]);
  c.bias = operand(call.inputs[4]);
  PLIMSOLL_TRY(prepare_batch_norm(c, stream));
  return map_channels({.x = operand(x),
                       .residual = input_operand(call, 5),
                       .y = operand(call.outputs[0]),
                       .by = batch_channels(c, call.inputs[1], x.shape().num_rows()),
                       .n = x.num_elements(),
                       .relu = call.op->attrs.flag("relu") ? 1 : 0},
                      stream);
}

namespace {

int64_t batch_norm_grad_bytes(const ir::OpTypes& types) {
  const ir::Shape& x = types.inputs[1].shape;
  Scratch scratch;
  scratch.take<float>(coefficient_elements(x));
  scratch.take<float>(2 * x.dim(-1));
  scratch.take<float>(2 * share_elements(x));
  return scratch.bytes();
}

// Operands dy, x, mean, variance, weight, bias or, where it `adds`, y, acc_dw?, acc_db?, dy2?; results dx,
// d_residual where it adds, dw, db unless frozen.
template <bool kAdds>
Status batch_norm_grad(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  const int64_t channels = x.shape().dim(-1), shares = share_elements(x.shape());
  const bool batch = attrs.flag("batch"), frozen = attrs.flag("frozen");
  const int relu = !kAdds && attrs.flag("relu") ? 1 : 0;
  Scratch scratch(call);
  ChannelCoefficients c =
      coefficients_of(call, call.inputs[3], scratch.take<float>(coefficient_elements(x.shape())));
  c.weight = operand(call.inputs[4]);
  if (!kAdds) c.bias = operand(call.inputs[5]);
  PLIMSOLL_TRY(prepare_batch_norm(c, stream));
  float* slope = scratch.take<float>(2 * channels);
  float* dw = scratch.take<float>(2 * shares);
  const Operand dz = kAdds ? operand(call.outputs[1]) : Operand{};
  const DeviceChannels by = batch_channels(c, call.inputs[2], x.shape().num_rows());
  PLIMSOLL_TRY(sum_channels(x.shape(),
                            {.dy = operand(dy),
                             .dy2 = input_operand(call, 8),
                             .x = operand(x),
                             .mask = kAdds ? operand(call.inputs[5]) : Operand{},
                             .dz = dz,
                             .dx = batch ? Operand{} : operand(dx),
                             .by = by,
                             .rstd = c.rstd,
                             .dw = batch || !frozen ? dw : nullptr,
                             .db = dw + shares,
                             .granules = {},
                             .relu = relu},
                            stream));
  if (!batch && frozen) return Ok{};
  JoinSums join{.dw_shares = dw, .db_shares = dw + shares, .scale = c.scale, .rstd = c.rstd};
  join.slope = batch ? slope : nullptr;
  join.offset = slope + channels;
  if (!frozen) {
    join.acc_dw = input_operand(call, 6);
    join.acc_db = input_operand(call, 7);
    join.dw = operand(call.outputs[kAdds ? 2 : 1]);
    join.db = operand(call.outputs[kAdds ? 3 : 2]);
  }
  PLIMSOLL_TRY(join_sums(x.shape(), join, stream));
  if (!batch) return Ok{};
  return channel_gradient({.dy = kAdds ? dz : operand(dy),
                           .x = operand(x),
                           .dx = operand(dx),
                           .by = by,
                           .slope = slope,
                           .offset = slope + channels,
                           .n = x.num_elements(),
                           .relu = relu},
                          stream);
}

}  // namespace

std::span<const Kernel> batch_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "batch_norm", .run = batch_norm, .workspace_bytes = batch_norm_bytes},
      {.op = "batch_norm_add_grad", .run = batch_norm_grad<true>, .workspace_bytes = batch_norm_grad_bytes},
      {.op = "batch_norm_grad", .run = batch_norm_grad<false>, .workspace_bytes = batch_norm_grad_bytes},
      {.op = "batch_statistics", .run = batch_statistics, .workspace_bytes = batch_statistics_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
