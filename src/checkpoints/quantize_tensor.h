// One matrix as the tensors that stand for it in a file of transformers with bitsandbytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/quantized_tensors.h"
#include "io/safetensors_writer.h"

namespace plimsoll::checkpoints {

/// What a matrix is to become.
struct QuantizePlan {
  QuantizedFormat format = QuantizedFormat::kNf4;
  bool nested = false;
  bool transposed = false;  ///< stored [in, out]
  float offset = 0;         ///< the nested scales' mean, read beforehand (scales_mean)
};

/// The tensors that it becomes, without their bytes; their shapes follow from the matrix and `offset`.
std::vector<io::SafetensorsEntry> quantized_entries(const io::SafetensorsTensor& matrix,
                                                    const QuantizePlan& plan);

struct QuantizedParts {
  std::vector<std::vector<std::byte>> bytes;  ///< of each entry
  double largest_error = 0;
};
/// Reads and quantises it. Errors: kBadData for what is not finite; kIo.
Result<QuantizedParts> quantize_tensor(const io::WeightRef& matrix, const QuantizePlan& plan,
                                       int num_threads);

/// The mean of the blocks' absmax. Errors: kIo.
Result<float> scales_mean(const io::WeightRef& matrix, const QuantizePlan& plan, int num_threads);

}  // namespace plimsoll::checkpoints
