// What becomes of a text that is imported.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "importing/import.h"
#include "settings/run_config.h"
#include "settings/settings.h"

namespace plimsoll::importing {

inline Result<Imported> import_text(const std::string& text, const std::string& from = "") {
  const std::vector<InputFile> files = {{"args.yaml", text}};
  return import_run(files, from);
}

/// What the run file says of a setting, "-" where the text could not be imported.
inline std::string setting_of(const Result<Imported>& imported, const std::string& path) {
  if (!imported) return "- " + imported.error().message();
  const auto run = settings::parse_run_config(imported->run_file, "run.yaml");
  return run ? settings::setting_text(*settings::find_setting(path), *run) : "- " + run.error().message();
}

inline const KeyReport* report_of(const Imported& imported, const std::string& name) {
  const auto found = std::find_if(imported.keys.begin(), imported.keys.end(),
                                  [&](const KeyReport& report) { return report.key.name == name; });
  return found == imported.keys.end() ? nullptr : &*found;
}

inline std::string fate_of(const Result<Imported>& imported, const std::string& name) {
  if (!imported) return "- " + imported.error().message();
  const KeyReport* report = report_of(*imported, name);
  return report == nullptr ? "absent" : std::string(name_of(report->fate));
}

}  // namespace plimsoll::importing
