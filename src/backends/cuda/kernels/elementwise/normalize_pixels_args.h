// Arguments of normalize_pixels.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// (pixel * rescale - mean) / std of each channel, in double.
struct NormalizePixels {
  const unsigned char* pixels = nullptr;
  Operand out = {};
  i64 n = 0;
  double rescale = 1, mean[16] = {}, std[16] = {};
  int channels = 0;
};

inline constexpr DeviceKernel<NormalizePixels> kNormalizePixels{"elementwise/normalize_pixels",
                                                                "normalize_pixels"};

}  // namespace plimsoll::cuda
