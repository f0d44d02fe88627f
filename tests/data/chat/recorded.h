// What transformers rendered (record.py), read back.
#pragma once

#include <filesystem>
#include <string>

#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll {

inline const std::filesystem::path kChatFolder = std::filesystem::path(PLIMSOLL_TEST_DIR) / "data" / "chat";

inline Tree recorded(const std::string& name) {
  return parse_json(read_all((kChatFolder / "recorded" / (name + ".json")).string()), {.max_bytes = 1 << 24})
      .value();
}

}  // namespace plimsoll
