// A file in memory with a name, for readers that open paths.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/check.h"

class MemoryFile {
 public:
  /// `ending`: of its name, for readers that go by it; empty: they do not.
  explicit MemoryFile(const std::string& ending = {})
      : path_("/proc/self/fd/" + std::to_string(fd_)), is_link_(!ending.empty()) {
    PLIMSOLL_CHECK(fd_ >= 0);
    if (!is_link_) return;
    const std::string target = path_;
    path_ = std::filesystem::temp_directory_path() / ("plimsoll-fuzz-" + std::to_string(::getpid()) + ending);
    ::unlink(path_.c_str());
    PLIMSOLL_CHECK(::symlink(target.c_str(), path_.c_str()) == 0);
  }
  ~MemoryFile() {
    if (is_link_) ::unlink(path_.c_str());
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// These bytes and nothing else.
  void hold(std::span<const std::byte> bytes) const {
    PLIMSOLL_CHECK(::ftruncate(fd_, 0) == 0 &&
                   ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }

 private:
  int fd_ = ::memfd_create("fuzz", 0);
  std::string path_;
  bool is_link_;
};
