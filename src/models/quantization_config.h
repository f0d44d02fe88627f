// quantization_config of a config.json: a model whose files already have quantized linear layers.
#pragma once

#include <optional>

#include "io/model_config.h"
#include "models/quantize.h"

namespace plimsoll::models {

/// What the model's files are to be taken as; nothing where they are not quantised. What products compute in
/// (bnb_4bit_compute_dtype) and where outliers begin (llm_int8_threshold) is the run's matter. Errors:
/// kBadData for every other method than bitsandbytes (GPTQ, AWQ, …), by name, for what is neither 4 nor 8
/// bits, and for codes that are stored in other units than bytes.
Result<std::optional<QuantizeSpec>> read_quantization_config(const io::ConfigJson& config);

/// "nf4 with double quantisation", "fp4", "int8 by rows".
std::string_view quantized_name(ir::DType dtype);

}  // namespace plimsoll::models
