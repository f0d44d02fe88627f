// Adapters between a session and PEFT's directories: first values, adapter_model.safetensors in,
// adapter_config.json out.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/safetensors_reader.h"
#include "models/model.h"
#include "settings/run_config.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::checkpoints {

/// The adapters' first values, by seed and the tensor's name alone: the same for any layout of storages.
/// Nothing where the model has none. Errors: of the device.
Status draw_adapters(const models::Model& model, int64_t seed, runtime::Session& session);

/// The tensor of that name; older versions of PEFT say some otherwise. Or null.
const io::SafetensorsTensor* find_adapter_tensor(const io::SafetensorsFile& file, const std::string& name);
/// Whether the file holds what the model's adapters save, and nothing else. Errors: as load_adapter.
Status check_adapter(const models::Model& model, const io::SafetensorsFile& file);

/// A note for each name of the adapter's settings that no module of the model has.
void note_unmatched(const models::Model& model, const std::string& directory);

/// Reads `directory`/adapter_model.safetensors into what the model's adapters save. Errors: kBadData naming
/// the tensors that are missing, of another shape or of no adapter here: one for another base; kIo.
Status load_adapter(const models::Model& model, const std::string& directory, runtime::Session& session);

/// adapter_config.json of a run. Errors: kInvalidArgument; kBadData of lora.adapter's.
Result<std::string> adapter_config_of(const settings::RunConfig& config, const models::Model& model);

}  // namespace plimsoll::checkpoints
