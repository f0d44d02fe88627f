// Convolutions with batch normalisation: the launches of the two ops, in the same scratch.
#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/conv/conv2d.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/norm/batch_norm.h"

namespace plimsoll::cuda {
namespace {

/// Operands of the convolution; the norm's stand behind them.
constexpr size_t kConvOperands = 2;

/// kNormBytes: of the norm's kernel, whose x is the convolution's result.
template <int64_t (*kNormBytes)(const ir::OpTypes&)>
int64_t conv_norm_bytes(const ir::OpTypes& types) {
  const ir::OpTypes norm{types.op, {types.outputs[0]}, {}, types.attrs};
  return std::max(conv2d_bytes(types), kNormBytes(norm));
}

Status convolve(const KernelCall& call, Stream& stream) {
  return conv2d({call.op, call.inputs.first(kConvOperands), call.outputs.first(1), call.workspace}, stream);
}

Status conv2d_statistics(const KernelCall& call, Stream& stream) {
  PLIMSOLL_TRY(convolve(call, stream));
  return batch_statistics({call.op, call.outputs.first(1), call.outputs.subspan(1), call.workspace}, stream);
}

Status conv2d_batch_norm(const KernelCall& call, Stream& stream) {
  PLIMSOLL_TRY(convolve(call, stream));
  std::vector<TensorRef> operands{call.outputs[0]};
  operands.insert(operands.end(), call.inputs.begin() + kConvOperands, call.inputs.end());
  return batch_norm({call.op, operands, call.outputs, call.workspace}, stream);
}

}  // namespace

std::span<const Kernel> conv_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "conv2d_batch_norm",
       .run = conv2d_batch_norm,
       .workspace_bytes = conv_norm_bytes<batch_norm_bytes>,
       .accepts = accepts_product},
      {.op = "conv2d_statistics",
       .run = conv2d_statistics,
       .workspace_bytes = conv_norm_bytes<batch_statistics_bytes>,
       .accepts = accepts_product},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
