// The checkpoints of a run.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "program.h"

namespace plimsoll::e2e {

/// Names of the checkpoints in the folder's out/: "checkpoint-9", ….
inline std::set<std::string> checkpoint_names(const Folder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("out")))
    if (entry.path().filename().string().starts_with("checkpoint-")) names.insert(entry.path().filename());
  return names;
}

}  // namespace plimsoll::e2e
