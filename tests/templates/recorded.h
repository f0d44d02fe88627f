// What transformers rendered (record.py), read back.
#pragma once

#include <filesystem>
#include <string>

#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::templates {

inline const std::filesystem::path kChatFolder = std::filesystem::path(PLIMSOLL_TEST_DIR) / "templates";

inline io::Tree recorded(const std::string& name) {
  return io::parse_json(io::read_all((kChatFolder / "recorded" / (name + ".json")).string()),
                        {.max_bytes = 1 << 24})
      .value();
}

}  // namespace plimsoll::templates
