// Arguments of softmax.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Dense rows of `cols`; `log`: the logarithm. Of the slope `dy` is given and x is the result.
struct SoftmaxArgs {
  Operand dy, x, out;
  i64 cols = 0;
  int log = 0, padding = 0;
};

inline constexpr DeviceKernel<SoftmaxArgs> kSoftmax{"elementwise/softmax", "softmax"};
inline constexpr DeviceKernel<SoftmaxArgs> kSoftmaxGrad{"elementwise/softmax", "softmax_grad"};

}  // namespace plimsoll::cuda
