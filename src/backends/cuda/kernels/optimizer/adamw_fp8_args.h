// Arguments of adamw_fp8.cu.
#pragma once

#include "backends/cuda/kernels/optimizer/tensor_update_args.h"

namespace plimsoll::cuda {

constexpr int kFp8Warps = 8;       ///< of a block
constexpr int kFp8Elements = 256;  ///< of a warp: one block of ops::kCodeBlock, two of ops::kCoatBlock
constexpr int kFp8LmLanes = 32;    ///< that share a scale, eight elements each
constexpr int kCoatLanes = 16;

struct AdamwFp8 {
  TensorStep t;
  unsigned char* m_codes = nullptr;
  void* v_codes = nullptr;  ///< fp16 of fp8_lm, else of a byte
  float *m_absmax = nullptr, *v_absmax = nullptr;
  float *m_power = nullptr, *v_power = nullptr;  ///< of coat
};
inline constexpr DeviceKernel<AdamwFp8> kAdamwFp8Lm{"optimizer/adamw_fp8", "adamw_fp8_lm"};
inline constexpr DeviceKernel<AdamwFp8> kAdamwCoat{"optimizer/adamw_fp8", "adamw_coat"};

}  // namespace plimsoll::cuda
