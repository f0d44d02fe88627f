// config.json: whatever is accepted has sizes whose products fit, finite frequencies, and prints as JSON that
// reads back to the same text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "models/gpt2_config.h"
#include "models/llama_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config =
      plimsoll::parse_config_json(std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
  if (!config) return 0;
  const std::string text = plimsoll::to_json(config->fields());
  const auto again = plimsoll::parse_config_json(text, "again");
  PLIMSOLL_CHECK(again.ok() && plimsoll::to_json(again->fields()) == text,
                 "JSON that reads back differently: " + text);
  (void)config->model_type();
  if (const auto llama = plimsoll::parse_llama_config(*config)) {
    PLIMSOLL_CHECK(llama->num_parameters() > 0);
    PLIMSOLL_CHECK(llama->num_attention_heads % llama->num_key_value_heads == 0);
    for (const float frequency : llama->rope.inverse_frequencies(llama->head_dim))
      PLIMSOLL_CHECK(std::isfinite(frequency));
  }
  if (const auto gpt2 = plimsoll::parse_gpt2_config(*config)) PLIMSOLL_CHECK(gpt2->num_parameters() > 0);
  return 0;
}
