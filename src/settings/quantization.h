// quantization: what its settings say together, with transformers' names.
#pragma once

#include <optional>

#include "base/result.h"
#include "models/quantize.h"
#include "settings/run_config.h"

namespace plimsoll {

/// What is kept in few bits, and how; nothing where nothing is.
std::optional<models::QuantizeSpec> quantize_spec(const QuantizationSettings& settings);

/// What contradicts the section, where it is on. Errors: kInvalidArgument.
Status check_quantization(const RunConfig& config);
/// What training or evaluating needs beside it: adapters, where it trains, and weights to quantise. Errors:
/// kInvalidArgument.
Status check_quantized_use(const RunConfig& config, RunUse use);

}  // namespace plimsoll
