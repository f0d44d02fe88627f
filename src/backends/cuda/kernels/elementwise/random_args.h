// Arguments of random.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// x [sequences, n]; kept where its word is at least the threshold, then divided by `keep`.
struct Dropout {
  Operand x;
  const u32* random = nullptr;
  Operand out;
  i64 sequences = 0, n = 0;
  u32 key = 0;
  u64 threshold = 0;
  float keep = 1;
};
struct RandomNormal {
  const u32* random = nullptr;
  Operand out;
  i64 n = 0;
  double mean = 0, std = 1;
  u32 key = 0;
};

inline constexpr DeviceKernel<Dropout> kDropout{"elementwise/random", "dropout"};
inline constexpr DeviceKernel<RandomNormal> kRandomNormal{"elementwise/random", "random_normal"};

}  // namespace plimsoll::cuda
