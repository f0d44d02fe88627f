// Arguments of ranks.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Ranks of a group whose values are added in order, and levels of groups of groups at most.
constexpr int kSumFanIn = 8, kSumLevels = 8;

/// out[i] = received[0][i] + received[1][i] + …, each of n elements, as ops::in_order_of_ranks has it.
struct SumRanks {
  const float* received = nullptr;
  float* out = nullptr;
  i64 n = 0;
  int ranks = 1, levels = 1;
};
inline constexpr DeviceKernel<SumRanks> kSumRanks{"ranks/ranks", "sum_ranks"};

}  // namespace plimsoll::cuda
