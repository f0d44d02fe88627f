// Layer scale and stochastic depth.
#include "backends/cuda/kernels/norm/channels.h"
#include "backends/cuda/kernels/norm/groups_args.h"
#include "ops/philox.h"

namespace plimsoll::cuda {
namespace {

/// Operand 1 is the branch, 2 and 3 scale? and kept?; what is made of them lies in scratch.
struct BranchFactors {
  BranchFactors(const ir::Shape& branch, Scratch& scratch)
      : zeros(scratch.take<float>(sample_channels(branch))),
        kept(scratch.take<float>(sample_channels(branch))),
        product(scratch.take<float>(sample_channels(branch))) {}
  Status fill(const KernelCall& call, Stream& stream) const {
    const ir::Shape& branch = call.inputs[1].shape();
    return stream.launch(kScaleFactors, blocks(sample_channels(branch), kThreads), {kThreads}, 0,
                         {.scale = input_operand(call, 2),
                          .kept = data_or_null<const float>(input_or_none(call, 3)),
                          .zeros = zeros,
                          .kept_of_channels = kept,
                          .product = product,
                          .samples = branch.dim(0),
                          .channels = branch.dim(-1)});
  }
  [[nodiscard]] DeviceChannels channels(const ir::Shape& branch) const {
    return {zeros, product, zeros, branch.dim(-1), branch.num_rows() / branch.dim(0)};
  }
  float *zeros, *kept, *product;
};

int64_t scaled_add_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  (void)BranchFactors(types.inputs[1].shape, scratch);
  return scratch.bytes();
}
int64_t scaled_add_grad_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  (void)BranchFactors(types.inputs[1].shape, scratch);
  scratch.take<float>(2 * share_elements(types.inputs[1].shape));
  return scratch.bytes();
}

Status scaled_add(const KernelCall& call, Stream& stream) {
  const TensorRef& branch = call.inputs[1];
  Scratch scratch(call);
  const BranchFactors f(branch.shape(), scratch);
  PLIMSOLL_TRY(f.fill(call, stream));
  return map_channels({.x = operand(branch),
                       .residual = operand(call.inputs[0]),
                       .y = operand(call.outputs[0]),
                       .by = f.channels(branch.shape()),
                       .n = branch.num_elements(),
                       .relu = 0},
                      stream);
}

Status scaled_add_grad(const KernelCall& call, Stream& stream) {
  const ir::Shape& branch = call.inputs[1].shape();
  const bool learns = call.outputs.size() > 1;
  Scratch scratch(call);
  const BranchFactors f(branch, scratch);
  float* shares = scratch.take<float>(2 * share_elements(branch));
  PLIMSOLL_TRY(f.fill(call, stream));
  SumChannels sums{.dy = operand(call.inputs[0]), .x = operand(call.inputs[1])};
  sums.dx = operand(call.outputs[0]);
  sums.by = f.channels(branch);
  sums.rstd = f.kept;
  sums.dw = learns ? shares : nullptr;
  sums.db = shares + share_elements(branch);
  PLIMSOLL_TRY(sum_channels(branch, sums, stream));
  if (!learns) return Ok{};
  JoinSums join{.dw_shares = shares, .db_shares = sums.db};
  join.acc_dw = input_operand(call, 4);
  join.dw = operand(call.outputs[1]);
  return join_sums(branch, join, stream);
}

Status kept_samples(const KernelCall& call, Stream& stream) {
  const double p = call.op->attrs.f64("p");
  const int64_t count = call.outputs[0].num_elements();
  return stream.launch(kKeptSamples, blocks(count, kThreads), {kThreads}, 0,
                       {.random = call.inputs[0].as<const uint32_t>(),
                        .kept = call.outputs[0].as<float>(),
                        .count = count,
                        .key = static_cast<uint32_t>(call.op->attrs.i64("key")),
                        .threshold = ops::dropout_threshold(p),
                        .value = static_cast<float>(1.0 / (1.0 - p))});
}

}  // namespace

std::span<const Kernel> layer_scale_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "kept_samples", .run = kept_samples},
      {.op = "scaled_add", .run = scaled_add, .workspace_bytes = scaled_add_bytes},
      {.op = "scaled_add_grad", .run = scaled_add_grad, .workspace_bytes = scaled_add_grad_bytes},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
