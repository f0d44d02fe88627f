// Arguments of muon.cu.
#pragma once

#include "backends/cuda/kernels/optimizer/tensor_update_args.h"

namespace plimsoll::cuda {

constexpr int kMuonThreads = 256;
constexpr int kMuonBlock = 8 * kMuonThreads;  ///< elements

/// A matrix, one part of a parameter.
struct Muon {
  TensorStep t;
  Operand momentum;
  float* x = nullptr;          ///< the update
  double* squares = nullptr;   ///< of each block of it
  float* scale = nullptr;      ///< the inverse of its norm
  double epsilon = 0;          ///< the least norm
  double adjustments[2] = {};  ///< of the rate: by the matrix's shape, so that it matches AdamW's
  i64 blocks = 0;
};
inline constexpr DeviceKernel<Muon> kMuonGradient{"optimizer/muon", "muon_gradient"};
inline constexpr DeviceKernel<Muon> kMuonNorm{"optimizer/muon", "muon_norm"};
inline constexpr DeviceKernel<Muon> kMuonScale{"optimizer/muon", "muon_scale"};
inline constexpr DeviceKernel<Muon> kMuonStep{"optimizer/muon", "muon_step"};

/// to = a * x + b * to
struct Combination {
  const float* x = nullptr;
  float* to = nullptr;
  i64 n = 0;
  float a = 1, b = 1;
};
inline constexpr DeviceKernel<Combination> kMuonCombine{"optimizer/muon", "muon_combine"};

}  // namespace plimsoll::cuda
