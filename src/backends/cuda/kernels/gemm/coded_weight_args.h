// A quantized weight (ir/dtype.h: nf4, fp4, both doubly quantized, int8 by rows) as kernels read it.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Elements of a block of 4-bit codes that share a scale, and scales of such blocks that share one.
constexpr int kScaledCodes = 64, kScaledScales = 256;

enum class Codes : int { kFourBits = 0, kInt8Rows = 1 };

struct CodedWeight {
  const unsigned char* codes = nullptr;
  const float* scales = nullptr;  ///< one for each kScaledCodes elements, or for each row
  i64 row = 0;                    ///< elements of a row
  Codes form = Codes::kFourBits;
  float values[16] = {};  ///< of the 4-bit codes
};

}  // namespace plimsoll::cuda
