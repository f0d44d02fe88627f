// Arguments of norm_parts.cu.
#pragma once

#include "backends/cuda/kernels/norm/norm_args.h"

namespace plimsoll::cuda {

/// Rows of a granule that a block takes, one after the other.
constexpr int kRowsOfPart = 16;
constexpr int kPartsOfGranule = kGranuleRows / kRowsOfPart;
/// Columns that a block's threads hold, eight each.
constexpr int kMostHeldColumns = 8 * kMostRowThreads;

/// Gradients of the rows, and of each part of a granule the sums for the gradients of weight and bias.
struct NormGradParts {
  NormGrad rows;
  DeviceGranules granules;
  float *weight_sums = nullptr,
        *bias_sums = nullptr;  // [granules, kPartsOfGranule, cols]; the latter of layer_norm
};
/// Sums of the parts of each granule, then acc, where given, and the granules in order.
struct AddParts {
  const float *weight_sums = nullptr, *bias_sums = nullptr;
  DeviceGranules granules;
  i64 count = 0, cols = 0;  // granules
  Operand acc_dw, dw, acc_db, db;
};

inline constexpr DeviceKernel<NormGradParts> kNormGradParts{"norm/norm_parts", "norm_grad_parts"};
inline constexpr DeviceKernel<AddParts> kAddParts{"norm/norm_parts", "add_parts"};

}  // namespace plimsoll::cuda
