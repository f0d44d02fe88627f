// Arguments of adamw_8bit.cu.
#pragma once

#include "backends/cuda/kernels/optimizer/tensor_update_args.h"

namespace plimsoll::cuda {

/// Elements that share a scale (ops::kCodeBlock); a warp takes them.
constexpr int kCodesOfWarp = 256;
constexpr int kCodeWarps = 8;  ///< of a block

struct Adamw8bit {
  TensorStep t;
  unsigned char *m_codes = nullptr, *v_codes = nullptr;
  float *m_absmax = nullptr, *v_absmax = nullptr;
  float signed_values[129];  ///< of the map's magnitudes, from that of 0 on
  float unsigned_values[256];
};
static_assert(sizeof(Adamw8bit) <= kMostArgumentBytes);
inline constexpr DeviceKernel<Adamw8bit> kAdamw8bit{"optimizer/adamw_8bit", "adamw_8bit"};

}  // namespace plimsoll::cuda
