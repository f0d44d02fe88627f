// Run files: the input is a run file, then (after a zero byte each) overrides. Whatever is accepted must
// print as YAML that reads back to the same run, and its model's config must be readable or refused without
// harm.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "models/families.h"
#include "models/gpt2_config.h"
#include "settings/run_config.h"
#include "settings/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  while (true) {
    const size_t end = input.find('\0');
    parts.emplace_back(input.substr(0, end));
    if (end == std::string_view::npos) break;
    input.remove_prefix(end + 1);
  }
  const std::string text = parts.front();
  parts.erase(parts.begin());
  const auto run = plimsoll::settings::parse_run_config(text, "run.yaml", parts);
  if (!run) {
    PLIMSOLL_CHECK(!run.error().what.empty(), "an error that says nothing");
    return 0;
  }
  const std::string yaml = plimsoll::settings::run_config_yaml(*run);
  const auto again = plimsoll::settings::parse_run_config(yaml, "recorded.yaml");
  PLIMSOLL_CHECK(again.ok(), "the recorded run is refused:\n" + yaml + "\n" + again.error().message());
  PLIMSOLL_CHECK(plimsoll::settings::run_config_yaml(*again) == yaml,
                 "the recorded run reads back differently:\n" + yaml);
  if (!run->model.path.empty()) return 0;  // would read files
  if (const auto config = plimsoll::settings::load_model_config(run->model)) {
    for (const auto family : plimsoll::models::kFamilies)
      if (family().parse != nullptr) (void)family().parse(*config);
    (void)plimsoll::models::parse_gpt2_config(*config);
  }
  return 0;
}
