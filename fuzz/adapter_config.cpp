// adapter_config.json: whatever is accepted has ranks and scales that are numbers, is written again as text
// that reads back to the same, and its patterns answer for a module's name, whichever they are.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "models/lora_config.h"
#include "models/module_names.h"

namespace {

using namespace plimsoll::models;

void check_names(const LoraSpec& spec) {
  const std::string module = "model.layers.11.self_attn.q_proj";
  for (const ModuleNames* names : {&spec.target_modules, &spec.exclude_modules}) {
    if (!names->given()) continue;
    (void)check_pattern("a setting", names->names.front());
    (void)matches(*names, module);
  }
  (void)layer_index(module, spec.layers_pattern);
  const auto rank = by_pattern(spec.rank_pattern, module);
  PLIMSOLL_CHECK(!rank || *rank > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = parse_adapter_config(text, "adapter_config.json");
  if (!spec) return 0;
  PLIMSOLL_CHECK(spec->r >= 1 && std::isfinite(spec->lora_alpha));
  check_names(*spec);
  const AdapterOf of{.base = "base", .model_type = "llama"};
  const std::string written = adapter_config_text(*spec, of);
  const auto again = parse_adapter_config(written, "again");
  PLIMSOLL_CHECK(again.ok() && adapter_config_text(*again, of) == written,
                 "reads back differently: " + written);
  return 0;
}
