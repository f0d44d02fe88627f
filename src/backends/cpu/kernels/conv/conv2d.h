// The convolution itself, for the kernels that do more with its result.
#pragma once

#include <span>

#include "backends/cpu/kernels/conv/conv_products.h"

namespace plimsoll::cpu {

/// y of x; `bias` may be absent. `past_caches` as GemmArgs has it.
struct Convolution {
  ConvExtents extents = {};
  TensorRef x = {}, weight = {}, bias = {}, y = {};
  Precision precision = Precision::kF32;
  bool past_caches = false;
};
/// Bytes of scratch, a multiple of 64.
int64_t convolve_bytes(const ConvExtents& e, GemmTypes types, int num_threads);
void convolve(const Convolution& c, ThreadPool& pool, std::span<std::byte> scratch);

}  // namespace plimsoll::cpu
