#include "preprocessing/cache_key.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "io/file.h"

namespace plimsoll::train {
namespace {

/// Size and time of the last change; empty where there is no such file.
std::string file_state(const std::string& path) {
  struct stat s = {};
  if (path.empty() || ::stat(path.c_str(), &s) != 0) return {};
  return fmt::format("{} {}.{}", s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

}  // namespace

std::string content_of(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  auto content = path.empty() ? Result<std::string>(std::string()) : read_small_file(path, kMostBytes);
  return content ? std::move(*content) : std::string();
}

void CacheKey::add(std::string_view part) {
  sum_.add(part);
  sum_.add(std::string_view("\0", 1));
}

void CacheKey::add_files(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code code;
    add(std::filesystem::absolute(path, code).string());
    add(file_state(path));
  }
}

}  // namespace plimsoll::train
