// Arguments of norm.cu.
#pragma once

#include "backends/cuda/kernels/norm/row_strides_args.h"

namespace plimsoll::cuda {

/// Of a block that takes a row, eight elements a thread at a time.
constexpr int kMostRowThreads = 512;

struct NormRows {
  Operand x, residual, weight, bias, sum,
      y;  // residual and sum where an addition goes before; bias of layer_norm
  float *mean = nullptr, *rstd = nullptr;  // mean of layer_norm
  i64 cols = 0;
  RowStrides x_rows, residual_rows;
  float eps = 0;
};
struct NormGrad {
  Operand dy, x, weight, d_residual, dx;         // d_residual is added where given
  Operand rounded;                               // where given, of dx
  const float *mean = nullptr, *rstd = nullptr;  // mean of layer_norm
  i64 cols = 0;
  RowStrides dy_rows, x_rows, residual_rows;
};

inline constexpr DeviceKernel<NormRows> kNormRows{"norm/norm", "norm_rows"};
inline constexpr DeviceKernel<NormGrad> kNormGradRows{"norm/norm", "norm_grad_rows"};

}  // namespace plimsoll::cuda
