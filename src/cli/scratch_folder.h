// A folder for files that nobody keeps.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::cli {

/// Removed with all that is in it; not where a signal ends the process, which whoever has one sees to.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create() {
    std::error_code code;
    std::string path = (std::filesystem::temp_directory_path(code) / "plimsoll-inspect-XXXXXX").string();
    if (code || ::mkdtemp(path.data()) == nullptr)
      return io_error("cannot create a temporary folder", path, code ? code.value() : errno);
    return ScratchFolder(path);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code code;
    if (!path_.empty()) std::filesystem::remove_all(path_, code);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace plimsoll::cli
