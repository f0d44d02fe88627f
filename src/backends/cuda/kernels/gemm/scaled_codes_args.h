// Codes of FP8 and FP4 and their scales, as kernels read and write them (numerics/blocks.h).
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

enum class CodeFormat : int { kE4m3 = 0, kE5m2 = 1, kE2m1 = 2 };
/// What the scale of a block is stored as: none, where only the tensor has one.
enum class BlockScales : int { kNone = 0, kPowerOfTwo = 1, kE8m0 = 2, kE4m3 = 3 };

struct CodeScheme {
  CodeFormat format = CodeFormat::kE4m3;
  BlockScales scales = BlockScales::kNone;
  int block_rows = 1, block_cols = 128;  ///< of blocks; without scales of blocks they mean nothing
};

/// numerics::TensorScale.
struct DeviceTensorScale {
  float amax = 0, scale = 1, decode = 1;
};

}  // namespace plimsoll::cuda
