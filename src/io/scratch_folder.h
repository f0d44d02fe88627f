// A folder for files that nobody keeps.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace plimsoll::io {

/// Removed with all that is in it; not where a signal ends the process, which whoever has one sees to.
class ScratchFolder {
 public:
  /// A new one, named "plimsoll-<purpose>-…", where temporary files go. Errors: kIo.
  static Result<ScratchFolder> create(const std::string& purpose);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace plimsoll::io
