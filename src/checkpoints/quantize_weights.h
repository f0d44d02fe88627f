// Loads weights of a model directory into a quantized parameter, quantizing them while they are read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoints/load_weights.h"

namespace plimsoll::checkpoints {

/// Reads the source's tensor, all of it, into its parameter's state of a block type. Memory:
/// quantize_scratch. From any thread. Errors: kBadData naming a tensor with a value that is not finite; kIo.
Status read_quantized(const WeightSource& source, runtime::Session& session);

/// All of the source's tensor as f32, each value such that `type` can hold it. Memory: beside the values
/// 256 KiB. Errors: as read_quantized.
Result<std::vector<float>> read_finite(const WeightSource& source, const ir::TensorType& type);

/// Most bytes that reading the model's parameters needs beside them, with a tensor a thread.
int64_t quantize_scratch(const models::Model& model, int num_threads);

}  // namespace plimsoll::checkpoints
