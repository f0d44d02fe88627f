// Arguments of accumulate.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kAccumulateThreads = 256;

/// out = g, or acc + g where acc is given, in bf16.
struct Accumulate {
  Operand g, acc, out;
  const u32* random = nullptr;
  i64 n = 0;
  u32 key = 0;
};
inline constexpr DeviceKernel<Accumulate> kAccumulate{"elementwise/accumulate", "accumulate"};

}  // namespace plimsoll::cuda
