// lora: what its settings say together, with PEFT's defaults.
#pragma once

#include <string>

#include "base/result.h"
#include "models/lora.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// The settings that are given, over `base`: PEFT's defaults, or what an adapter's files say. Errors:
/// kInvalidArgument for values that are none.
Result<models::LoraSpec> lora_spec(const LoraSettings& settings, models::LoraSpec base = {});

/// Settings that are given and that the adapter of lora.adapter has otherwise: it cannot be both. Dropout
/// alone may be another. Errors: kInvalidArgument naming setting and both values.
Status check_adapter_agrees(const LoraSettings& settings, const models::LoraSpec& adapter,
                            const std::string& directory);

/// What contradicts the section, where it is on: what is trained, stored and kept is decided by it. Errors:
/// kInvalidArgument.
Status check_lora(const RunConfig& config);

}  // namespace plimsoll::settings
