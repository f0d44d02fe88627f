#include "io/missing_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace plimsoll::io {

std::string missing_hint(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::current_path(failed);
  if (failed || std::filesystem::path(path).is_absolute()) return "check the path";
  return fmt::format("check the path; relative paths begin at the working folder, {}", folder.string());
}

}  // namespace plimsoll::io
