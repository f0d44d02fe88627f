// Configurations to import: the input is one, or two with a zero byte between them. Under each dialect: what
// is accepted accounts for every key once, and its run file, which import_run has checked, is the same each
// time.
#include "importing/import.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace importing = plimsoll::importing;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  std::vector<importing::InputFile> files = {{"a", std::string(input.substr(0, zero))}};
  if (zero != std::string_view::npos) files.push_back({"b", std::string(input.substr(zero + 1))});
  for (const char* from : {"", "transformers", "trl", "torchtune", "axolotl", "deepspeed"}) {
    const auto imported = importing::import_run(files, from);
    if (!imported) {
      const std::string& what = imported.error().what;
      PLIMSOLL_CHECK(!what.empty(), "an error that says nothing");
      continue;
    }
    std::set<std::string> seen;
    for (const auto& report : imported->keys)
      PLIMSOLL_CHECK(seen.insert(report.key.file + report.key.name).second,
                     "a key has two fates: " + report.key.name);
    const auto again = importing::import_run(files, from);
    PLIMSOLL_CHECK(again.ok() && again->run_file == imported->run_file, "another run file the second time");
    (void)plimsoll::io::to_json(importing::import_event(*imported));
  }
  return 0;
}
