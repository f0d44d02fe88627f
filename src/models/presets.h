// Public model families by name, so that a plan needs no file. Each is the family's own config.json,
// shortened to the fields that matter, and goes through the same reader as a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll::models {

/// A family's size as it is published. Its licence is that of the weights, by its usual name.
struct PresetInfo {
  std::string_view name, hub_id, licence;
  int64_t parameters = 0;
};
/// All, family by family.
std::vector<PresetInfo> presets();

/// The name of the preset that is meant: its own, or the hub's spelling of the same architecture, with the
/// publisher and "-hf", "-instruct" and the like ("meta-llama/Llama-3-8B", "Qwen/Qwen2.5-0.5B-Instruct").
std::optional<std::string_view> find_preset(std::string_view spelling);
/// The preset's config, by find_preset. Errors: kInvalidArgument naming the nearest known preset.
Result<io::ConfigJson> preset_config(std::string_view name);
/// The preprocessor_config.json that goes with a preset of an image family, by find_preset; empty for any
/// other.
std::string_view preset_processor(std::string_view name);
/// All names, in the order of presets().
std::vector<std::string> preset_names();

}  // namespace plimsoll::models
