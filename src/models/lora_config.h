// adapter_config.json, as PEFT writes and reads it.
#pragma once

#include <string>

#include "base/result.h"
#include "models/lora.h"

namespace plimsoll::models {

/// Of `directory`/adapter_config.json, and what the weights beside it hold of the base. Errors: kBadData for
/// another type of adapter than LORA, and for what would change the mathematics and is not supported (CorDA,
/// aLoRA, …), by name; kIo.
Result<LoraSpec> read_adapter_config(const std::string& directory);
/// The same from text; `source` stands in messages.
Result<LoraSpec> parse_adapter_config(std::string_view text, const std::string& source);

/// What PEFT needs beside the spec.
struct AdapterOf {
  std::string base = {};           ///< the base model: a path or a hub id; empty: unknown
  std::string model_type = {};     ///< for PEFT's defaults where target_modules are not given
  std::string head = {};           ///< the module of a classifier's head; empty: the base is a language model
  std::string task = "CAUSAL_LM";  ///< PEFT's task_type; empty: it has none for these
  bool transposed = false;         ///< the base's matrices are [in, out]
};
std::string adapter_config_text(const LoraSpec& spec, const AdapterOf& of);

}  // namespace plimsoll::models
