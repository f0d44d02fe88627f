// Reads files of /proc and /sys without heap allocations.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace plimsoll {

/// The start of a small kernel file, in a buffer on the stack: these are called while allocations are
/// counted.
struct KernelFile {
  explicit KernelFile(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, text.data(), text.size() - 1);
    text[static_cast<size_t>(std::max<ssize_t>(n, 0))] = '\0';
    close(fd);
  }
  /// The number after `key`, -1 where it is absent.
  [[nodiscard]] int64_t number_after(const char* key) const {
    const char* at = std::strstr(text.data(), key);
    return at == nullptr ? -1 : std::strtoll(at + std::strlen(key), nullptr, 10);
  }
  std::array<char, 8192> text{};
};

}  // namespace plimsoll
