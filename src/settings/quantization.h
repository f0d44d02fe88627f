// quantization: what its settings say together, with transformers' names.
#pragma once

#include <optional>

#include "base/result.h"
#include "models/quantize.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// What the settings keep in few bits, and how; nothing where nothing is.
std::optional<models::QuantizeSpec> quantize_spec(const QuantizationSettings& settings);
/// The same of a run whose model's files are quantised already, which decides: `stored`. Errors:
/// kInvalidArgument where settings say otherwise, and for what cannot be beside such files: training without
/// adapters, random weights, runtime.device cuda.
Result<models::QuantizeSpec> settle_stored(const RunConfig& config, models::QuantizeSpec stored, bool trains);

/// What contradicts the section, where it is on. Errors: kInvalidArgument.
Status check_quantization(const RunConfig& config);
/// What training or evaluating needs beside it: adapters, where it trains, and weights to quantise. Errors:
/// kInvalidArgument.
Status check_quantized_use(const RunConfig& config, RunUse use);

}  // namespace plimsoll::settings
