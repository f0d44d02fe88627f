// Group normalisation.
#include "backends/cuda/kernels/norm/channels.h"
#include "backends/cuda/kernels/norm/groups_args.h"

namespace plimsoll::cuda {
namespace {

DeviceGroups groups_of(const ir::Shape& x, int64_t groups) {
  return {device_granules(Granules(x)), x.dim(0), x.dim(-1), groups};
}
Dim group_blocks(const DeviceGroups& by) { return blocks(by.samples * by.groups, 1); }

/// What a pass over channels goes by, taken from scratch.
struct SpreadNumbers {
  SpreadNumbers(const ir::Shape& x, Scratch& scratch)
      : centre(scratch.take<float>(sample_channels(x))),
        scale(scratch.take<float>(sample_channels(x))),
        shift(scratch.take<float>(x.dim(-1))) {}
  [[nodiscard]] DeviceChannels channels(const ir::Shape& x) const {
    return {centre, scale, shift, x.dim(-1), x.num_rows() / x.dim(0)};
  }
  float *centre, *scale, *shift;
};

int64_t group_norm_bytes(const ir::OpTypes& types) {
  const ir::Shape& x = types.inputs[0].shape;
  Scratch scratch;
  scratch.take<float>(2 * share_elements(x));
  (void)SpreadNumbers(x, scratch);
  return scratch.bytes();
}

Status group_norm(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const DeviceGroups by = groups_of(x.shape(), call.op->attrs.i64("groups"));
  float *mean = call.outputs[1].as<float>(), *rstd = call.outputs[2].as<float>();
  Scratch scratch(call);
  float* means = scratch.take<float>(2 * share_elements(x.shape()));
  const SpreadNumbers spread(x.shape(), scratch);
  PLIMSOLL_TRY(channel_moments(x, means, stream));
  PLIMSOLL_TRY(stream.launch(kJoinGroups, group_blocks(by), {kThreads}, 0,
                             {.means = means,
                              .squares = means + share_elements(x.shape()),
                              .mean = mean,
                              .rstd = rstd,
                              .by = by,
                              .eps = call.op->attrs.f64("eps")}));
  PLIMSOLL_TRY(stream.launch(kSpreadGroups, blocks(sample_channels(x.shape()), kThreads), {kThreads}, 0,
                             {.mean = mean,
                              .rstd = rstd,
                              .weight = operand(call.inputs[1]),
                              .bias = operand(call.inputs[2]),
                              .centre = spread.centre,
                              .scale = spread.scale,
                              .rstd_of_channels = nullptr,
                              .shift = spread.shift,
                              .by = by}));
  return map_channels({.x = operand(x),
                       .residual = {},
                       .y = operand(call.outputs[0]),
                       .by = spread.channels(x.shape()),
                       .n = x.num_elements(),
                       .relu = 0},
                      stream);
}

int64_t group_norm_grad_bytes(const ir::OpTypes& types) {
  const ir::Shape& x = types.inputs[1].shape;
  Scratch scratch;
  scratch.take<float>(3 * sample_channels(x));
  (void)SpreadNumbers(x, scratch);
  scratch.take<float>(2 * share_elements(x));
  return scratch.bytes();
}

Status group_norm_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &dy = call.inputs[0], &x = call.inputs[1];
  const DeviceGroups by = groups_of(x.shape(), call.inputs[3].shape().dim(1));
  const int64_t count = sample_channels(x.shape());
  Scratch scratch(call);
  float* rstd = scratch.take<float>(3 * count);
  float *slope = rstd + count, *offset = slope + count;
  const SpreadNumbers spread(x.shape(), scratch);
  float* dw = scratch.take<float>(2 * share_elements(x.shape()));
  float* db = dw + share_elements(x.shape());
  const Operand weight = operand(call.inputs[2]);
  const auto* rstd_of_groups = call.inputs[4].as<const float>();
  PLIMSOLL_TRY(stream.launch(kSpreadGroups, blocks(count, kThreads), {kThreads}, 0,
                             {.mean = call.inputs[3].as<const float>(),
                              .rstd = rstd_of_groups,
                              .weight = weight,
                              .bias = {},
                              .centre = spread.centre,
                              .scale = spread.scale,
                              .rstd_of_channels = rstd,
                              .shift = nullptr,
                              .by = by}));
  SumChannels sums{.dy = operand(dy), .x = operand(x)};
  sums.by = spread.channels(x.shape());
  sums.rstd = rstd;
  sums.dw = dw;
  sums.db = db;
  PLIMSOLL_TRY(sum_channels(x.shape(), sums, stream));
  PLIMSOLL_TRY(stream.launch(kGroupSlopes, group_blocks(by), {kThreads}, 0,
                             {.dw_shares = dw,
                              .db_shares = db,
                              .rstd = rstd_of_groups,
                              .weight = weight,
                              .slope = slope,
                              .offset = offset,
                              .by = by}));
  PLIMSOLL_TRY(channel_gradient({.dy = operand(dy),
                                 .x = operand(x),
                                 .dx = operand(call.outputs[0]),
                                 .by = sums.by,
                                 .slope = slope,
                                 .offset = offset,
                                 .n = x.num_elements(),
                                 .relu = 0},
                                stream));
  if (call.outputs.size() == 1) return Ok{};  // frozen
  JoinSums join{.dw_shares = dw, .db_shares = db};
  join.acc_dw = input_operand(call, 5);
  join.acc_db = input_operand(call, 6);
  join.dw = operand(call.outputs[1]);
  join.db = operand(call.outputs[2]);
  return join_sums(x.shape(), join, stream);
}

}  // namespace

std::span<const Kernel> group_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "group_norm", .run = group_norm, .workspace_bytes = group_norm_bytes},
      {.op = "group_norm_grad", .run = group_norm_grad, .workspace_bytes = group_norm_grad_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
