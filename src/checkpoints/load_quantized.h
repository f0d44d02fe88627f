// Loads a matrix that the model's files have quantized into a parameter of that type, without rounding again.
#pragma once

#include "base/result.h"
#include "checkpoints/load_weights.h"

namespace plimsoll::checkpoints {

/// Codes and scales of source.quantized straight into their places in its parameter's state. No memory beside
/// it. From any thread. Errors: kBadData for scales that are not finite, or a file that was cut; kIo.
Status load_quantized(const WeightSource& source, runtime::Session& session);

}  // namespace plimsoll::checkpoints
