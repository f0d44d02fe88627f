// Writes a model directory with quantized linear layers, as transformers and bitsandbytes would save it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/quantized_tensors.h"

namespace plimsoll::model_tools {

struct QuantizeRequest {
  std::string model = {};  ///< a folder or a hub id of the local cache
  std::string output = {};
  checkpoints::QuantizedFormat format = checkpoints::QuantizedFormat::kNf4;
  bool double_quant = false;                   ///< 4 bits: the blocks' scales become codes too
  std::vector<std::string> skip_modules = {};  ///< linear maps that stay whole: names, or what they end with
  int num_threads = 1;
};

struct QuantizeReport {
  int64_t num_tensors = 0;
  int64_t num_quantized = 0;  ///< of them
  int64_t bytes_before = 0;   ///< of the weight files
  int64_t bytes = 0;
  double largest_error = 0;  ///< of a weight, |w - what its code stands for|
  std::string largest_in = {};
  double seconds = 0;
};

/// Writes `output`: the matrices of the model's repeated blocks as codes and scales (layout:
/// quantized_tensors.h), everything else as it is, the same files, quantization_config in config.json.
/// GPT-2's are turned to [out, in] first, as transformers does. Memory: one tensor in f32 and its codes. The
/// same bits for any number of threads. Errors: kInvalidArgument where the output is there and not empty, the
/// source above all, or no map has a name that is to be skipped; kBadData for a model that is quantised
/// already, weights that are not finite (int8: not finite in fp16, through which bitsandbytes takes them);
/// kIo.
Result<QuantizeReport> quantize_model(const QuantizeRequest& request);

}  // namespace plimsoll::model_tools
