// config.json: whatever is accepted has sizes whose products fit, finite frequencies, and prints as JSON that
// reads back to the same text.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "models/families.h"
#include "models/gpt2_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = plimsoll::io::parse_config_json(
      std::string_view(reinterpret_cast<const char*>(data), size), "config.json");
  if (!config) return 0;
  const std::string text = plimsoll::io::to_json(config->fields());
  const auto again = plimsoll::io::parse_config_json(text, "again");
  PLIMSOLL_CHECK(again.ok() && plimsoll::io::to_json(again->fields()) == text,
                 "JSON that reads back differently: " + text);
  (void)config->model_type();
  for (const auto family : plimsoll::models::kFamilies) {
    if (family().parse == nullptr) continue;
    const auto decoder = family().parse(*config);
    if (!decoder) continue;
    PLIMSOLL_CHECK(decoder->num_parameters() > 0);
    PLIMSOLL_CHECK(decoder->num_attention_heads % decoder->num_key_value_heads == 0);
    PLIMSOLL_CHECK(std::isfinite(decoder->rope.attention_factor));
    for (const float frequency : decoder->rope.inverse_frequencies(decoder->head_dim))
      PLIMSOLL_CHECK(std::isfinite(frequency));
  }
  for (const auto family : plimsoll::models::kImageFamilies)
    if (const auto model = family().make(*config)) PLIMSOLL_CHECK((*model)->num_parameters() > 0);
  if (const auto gpt2 = plimsoll::models::parse_gpt2_config(*config))
    PLIMSOLL_CHECK(gpt2->num_parameters() > 0);
  return 0;
}
