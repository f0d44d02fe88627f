// Streaming statistics of a tensor: extent, mean and spread of its numbers, streamed through a small
// buffer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_weights.h"

namespace plimsoll::io {

/// Of the finite elements: the others are counted alone.
struct TensorStats {
  int64_t elements = 0;
  int64_t finite = 0;
  int64_t zeros = 0;  ///< of either sign
  double min = 0, max = 0;
  double mean = 0;
  double std = 0;  ///< of the population: sqrt(mean((x - mean)^2))
};

/// Whether a dtype has statistics: F64, F32, F16, BF16, F8_E4M3, F8_E5M2.
bool has_statistics(std::string_view dtype);
/// Means and spreads are combined over blocks after Chan, Golub, LeVeque 1983, in double, in the file's
/// order. Memory: 80 KiB of stack. Errors: kIo; kBadData where the file was cut.
Result<TensorStats> measure_tensor(const SafetensorsFile& file, const SafetensorsTensor& tensor);
/// The same for many, on `num_threads` threads; the result does not depend on how many. Those without
/// statistics come back empty (0 elements). Errors: of the first tensor in the list that has one.
Result<std::vector<TensorStats>> measure_tensors(const std::vector<WeightRef>& tensors, int num_threads);

}  // namespace plimsoll::io
