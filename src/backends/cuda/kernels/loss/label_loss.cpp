// Losses against float labels.
#include "backends/cuda/kernels/loss/label_loss_args.h"
#include "backends/cuda/kernels/loss/loss.h"

namespace plimsoll::cuda {
namespace {

template <bool kSquared>
Status label_loss(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const int64_t rows = x.shape().num_rows();
  auto* losses = Scratch(call).take<float>(rows);
  PLIMSOLL_TRY(stream.launch(kLabelLossRows, blocks(rows, 8), {kThreads}, 0,
                             {.x = operand(x),
                              .labels = call.inputs[1].as<const float>(),
                              .losses = losses,
                              .rows = rows,
                              .cols = x.shape().dim(-1),
                              .squared = kSquared ? 1 : 0}));
  return sum_losses(losses, x.shape(), input_or_none(call, 3), call.outputs[0], stream);
}

template <bool kSquared>
Status label_loss_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  return stream.launch(kLabelLossGrad, blocks(x.num_elements(), kThreads), {kThreads}, 0,
                       {.x = operand(x),
                        .labels = call.inputs[1].as<const float>(),
                        .scale = call.inputs[2].as<const float>(),
                        .out = operand(call.outputs[0]),
                        .n = x.num_elements(),
                        .cols = x.shape().dim(-1),
                        .squared = kSquared ? 1 : 0});
}

}  // namespace

std::span<const Kernel> label_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "bce_with_logits", .run = label_loss<false>, .workspace_bytes = row_losses_bytes},
      {.op = "bce_with_logits_grad", .run = label_loss_grad<false>},
      {.op = "squared_error", .run = label_loss<true>, .workspace_bytes = row_losses_bytes},
      {.op = "squared_error_grad", .run = label_loss_grad<true>},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
